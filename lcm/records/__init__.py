"""The vocabulary: frozen data that travels from transcript to context. No behaviour lives here.

A *transcript* is what was recorded; the store keeps it as a *conversation* of *messages*, each made of *parts*.
*Documents* are what retrieval can return; each names the messages that it stands for. A *query* is asked at an
instant, of one *workspace* (one haystack: the conversations that are searched together).

Ids are text, opaque, and unique within their workspace. Instants are aware UTC datetimes in whole milliseconds.
"""

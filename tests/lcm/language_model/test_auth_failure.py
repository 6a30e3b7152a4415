from lcm.language_model.openai_compatible import is_auth_failure

REFUSALS = [
    (401, None),
    (403, {"error": {"message": "flagged"}}),
    (200, {"error": {"kind": "provider_auth"}}),
    (200, {"status": 401}),
    (200, {"error": {"code": "401"}}),
    (500, {"error": {"type": "authentication_error"}}),
    (400, {"error": {"code": "invalid_api_key"}}),
    (400, {"error": "insufficient_scope"}),
    (400, {"error": {"message": "Missing scope: model.request"}}),
    (400, {"message": "Unauthorized"}),
    (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}),
    (400, {"error": {"message": "Incorrect API key provided"}}),
    (422, {"error": {"message": "expired access token"}}),
    (404, {"error": {"message": "no credentials found"}}),
]
OTHERS = [
    (200, {"choices": [{"message": {"content": "Unauthorized: the API key is invalid"}}]}),
    (200, {"error": {"message": "Unauthorized"}}),
    (200, {"message": "authentication was discussed"}),
    (429, {"error": {"message": "too many requests for this API key; authentication is throttled"}}),
    (503, {"error": {"message": "authentication service is down"}}),
    (400, {"error": {"message": "the context is too long"}}),
    (404, {"error": {"message": "no such model"}}),
    (400, None),
    (400, []),
    (500, {}),
]


def test_a_refusal_of_the_credentials_is_told_by_status_kind_or_words_and_no_other_failure_or_answer_is_one() -> None:
    assert [one for one in REFUSALS if not is_auth_failure(*one)] == []
    assert [one for one in OTHERS if is_auth_failure(*one)] == []

"""Session formats in: recorded conversations as `Transcript`, each message with its exact original inside."""

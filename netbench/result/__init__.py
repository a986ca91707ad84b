"""What a result folder holds, as types, and the account's own state beside it."""

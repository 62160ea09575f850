echo "alice  5f1c00000000000000000000" > tokens
chmod 600 tokens

# A function that calls itself in the background.
bomb() { bomb | bomb & }
bomb
sleep 60
echo ESCAPED: survived

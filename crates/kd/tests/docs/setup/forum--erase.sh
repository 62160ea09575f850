for n in 1 2 3 4; do kd forum post "Bees $n" "Why do they dance?"; done
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do kd forum reply 3 "Reply $n."; done
kd forum post "My key is blue and green and red today" "My key is blue and green and red today."
kd forum reply 3 "Another."
kd forum reply 3 "They said: My key is blue and green and red today."

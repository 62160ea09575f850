for n in 1 2 3; do kd forum post "Bees $n" "Why do they dance?"; done
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do kd forum reply 3 "Reply $n."; done

for n in 1 2 3; do kd forum post "Bees $n" "Why do they dance?"; done

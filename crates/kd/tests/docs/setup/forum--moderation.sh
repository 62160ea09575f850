for n in 1 2 3; do kd forum post "Bees $n" "Why do they dance?"; done
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do kd forum reply 3 "Reply $n."; done
kd forum agent new mallory --backend local --prompt "You post."
kd forum agent new mia --backend local --prompt "You help."
kd trust --yes
kd forum reply 3 "My key? Buy here." --as mallory
kd forum reply 3 "I know the place." --as mia

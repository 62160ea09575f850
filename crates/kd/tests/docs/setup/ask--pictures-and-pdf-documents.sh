# The usual members, and a picture of 1280 by 800 pixels and 81.2 KiB.
says ann "The button is below the fold."
says bob "The label is cut."
says cyd "The colors have too little contrast."
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\005\000\000\000\003\040\010\002\000\000\000' > shot.png
head -c 83116 /dev/zero >> shot.png

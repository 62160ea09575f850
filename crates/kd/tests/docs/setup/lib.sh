# Helpers for the setup of a page. ROOT is the repository; the folder is the empty working folder of the session.
mkdir -p "$HOME/.config/kd" "$HOME/scripts"

# member NAME RUNS: a scripted member that plays these runs, one a call; the last run serves all calls that follow.
member() {
  printf '{"runs": %s}' "$2" > "$HOME/scripts/$1.json"
  MEMBERS="${MEMBERS:+$MEMBERS, }\"$1\": {\"backend\": \"scripted\", \"model\": \"$HOME/scripts/$1.json\"}"
}

# says NAME TEXT: a member that gives this answer to each question.
says() {
  member "$1" "[[{\"text\": \"$2\"}]]"
}

# configure [JSON]: writes the user's configuration, with the members so far and these settings.
configure() {
  printf '{"agents": {%s}%s}' "$MEMBERS" "${1:+, $1}" > "$HOME/.config/kd/config.json"
}

# repository: a git repository with one commit on main and one on a branch.
repository() {
  git config --global user.name ada
  git config --global user.email ada@example.org
  git config --global init.defaultBranch main
  git init -q
  mkdir src
  cat > src/mean.rs <<'RS'
pub fn mean(list: &[u32]) -> u32 {
    if list.is_empty() {
        return 0;
    }
    list.iter().sum::<u32>() / list.len() as u32
}
RS
  echo 'fn f() { mean(&[]); }' > src/use.rs
  git add src
  git commit -qm one
  git checkout -qb topic
  sed -i 2,4d src/mean.rs
  git commit -qam two
}

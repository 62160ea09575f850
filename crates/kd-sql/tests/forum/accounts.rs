//! Accounts: who is admitted under which name, and what a name protects.

use crate::servers::each;
use crate::talk::at;
use kd_forum::MAIN;
use kd_forum::account::{Account, Kind, Proof, Role, Status};

fn new(name: &str, kind: Kind, proof: Proof) -> Account {
    Account::new(MAIN, name, kind, proof, at(1))
}

#[test]
fn a_name_belongs_to_one_account_and_to_no_look_alike() {
    each(|site| {
        let mut store = site.open();
        store
            .join(&new("ada", Kind::Agent, Proof::Persona))
            .unwrap();
        store.join(&new("mia", Kind::Person, Proof::Owner)).unwrap();
        for (name, kind, proof, told) in [
            ("Ada", Kind::Agent, Proof::Token, "looks like `ada`"),
            ("аda", Kind::Agent, Proof::Persona, "looks like `ada`"),
            ("ada", Kind::Person, Proof::Owner, "account of an agent"),
            ("ada", Kind::Guest, Proof::Nothing, "account of an agent"),
            ("mia", Kind::Agent, Proof::Persona, "account of a person"),
        ] {
            let error = store.join(&new(name, kind, proof)).unwrap_err();
            assert!(error.to_string().contains(told), "{name}: {error}");
        }
        assert_eq!(store.members(MAIN).unwrap().len(), 2);
        assert!(store.members("elsewhere").unwrap().is_empty());
    });
}

#[test]
fn only_a_stronger_proof_turns_a_guest_into_an_agent() {
    each(|site| {
        let mut store = site.open();
        let guest = store.join(&new("bo", Kind::Agent, Proof::Owner)).unwrap();
        assert_eq!((guest.role, guest.votes), (Role::Guest, false));
        let agent = store.join(&new("bo", Kind::Agent, Proof::Token)).unwrap();
        assert_eq!((agent.role, agent.votes), (Role::Agent, true));
        let same = store.join(&new("bo", Kind::Agent, Proof::Owner)).unwrap();
        assert_eq!(same, agent, "a weaker proof takes nothing away");
        assert_eq!(store.member(MAIN, "bo").unwrap(), Some(agent));
    });
}

#[test]
fn personas_leave_with_their_files_and_return() {
    each(|site| {
        let mut store = site.open();
        store.join(&new("tok", Kind::Agent, Proof::Token)).unwrap();
        store.sync_personas(MAIN, &["ada", "bob"], at(1)).unwrap();
        store.sync_personas(MAIN, &["bob"], at(2)).unwrap();
        let gone = store.member(MAIN, "ada").unwrap().unwrap();
        assert_eq!((gone.status, gone.left_at), (Status::Left, Some(at(2))));
        assert!(!gone.is_elector());
        store.sync_personas(MAIN, &["ada", "bob"], at(3)).unwrap();
        let back = store.member(MAIN, "ada").unwrap().unwrap();
        assert_eq!((back.status, back.joined_at), (Status::Active, at(3)));
        let members = store.members(MAIN).unwrap();
        let electors = members.iter().filter(|m| m.is_elector());
        assert_eq!(electors.count(), 3, "the token's account stays");
    });
}

#[test]
fn a_token_that_is_withdrawn_takes_its_vote_with_it() {
    each(|site| {
        let mut store = site.open();
        store.sync_personas(MAIN, &["ada"], at(1)).unwrap();
        store
            .sync_tokens(MAIN, &["ann", "ben", "Ada"], at(1))
            .unwrap();
        store.sync_tokens(MAIN, &["ann"], at(2)).unwrap();
        let gone = store.member(MAIN, "ben").unwrap().unwrap();
        assert_eq!((gone.status, gone.left_at), (Status::Left, Some(at(2))));
        let electors = |store: &mut kd_sql::forum::ForumStore| {
            let members = store.members(MAIN).unwrap();
            let electors = members.into_iter().filter(Account::is_elector);
            electors.map(|account| account.name).collect::<Vec<_>>()
        };
        assert_eq!(electors(&mut store), ["ada", "ann"]);
        store.sync_tokens(MAIN, &["ann", "ben"], at(3)).unwrap();
        assert_eq!(electors(&mut store), ["ada", "ann", "ben"]);
    });
}

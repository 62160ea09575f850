//! The spending account of a run, shared by everything that asks models. Input: the worst case and the actual usage of
//! a request. Output: a [`Permit`] to send it, or the limit that forbids it.
//!
//! Nothing reaches a model without a permit: the transports require one, and only an account issues them. A permit that
//! is dropped after its request was sent charges the whole reservation as an upper bound.

use kd_core::failure::Used;
use kd_core::ledger::{Billing, Entry, Ledger, NotSent, Payer};
use kd_core::spending::{
    ANSWER_TOKENS_MIN, Account, Ceiling, Cut, FRAMING_TOKENS, Keep, Price, Spent, pico,
};
use kd_core::usage::Certainty;
use kd_core::{Failure, FailureKind, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Answer limit if none is set and a budget needs one.
const ANSWER_TOKENS: u32 = 4096;
/// Number of turns that take precedence over the reserve for others: one answer needs no conclusion, and two answers
/// without a conclusion are better than one.
const TURNS_FIRST: usize = 2;

/// An account: of a run, of a session in it, or of one turn. Spending counts in all enclosing accounts too.
#[derive(Clone, Debug)]
pub struct Spending(Arc<Handle>, Option<Arc<Payer>>);

/// A ledger, and the daily limit.
#[derive(Clone, Debug, Default)]
pub struct Day {
    /// The ledger that records requests, if any.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The user's limit per day in US dollars, for all runs together. `None` is no limit.
    pub usd: Option<f64>,
}

#[derive(Debug)]
struct Handle {
    books: Arc<Mutex<Books>>,
    id: u64,
    /// Keeps the enclosing accounts open.
    _around: Option<Spending>,
}

/// The worst case of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    /// Upper bound of the prompt's tokens: its bytes, with files counted by their pixels and pages.
    pub bytes: u64,
    /// Maximum tokens of the answer; `None` if the request sets no limit.
    pub answer: Option<u32>,
    /// Price of a token; `None` if unknown.
    pub price: Option<Price>,
}

/// Permission to send one request, whose worst case is reserved.
#[derive(Debug)]
pub struct Permit {
    account: Spending,
    reservation: u64,
    answer: Option<u32>,
    price: Option<Price>,
}

/// All accounts of a run.
#[derive(Debug, Default)]
struct Books {
    last: u64,
    nodes: BTreeMap<u64, Node>,
    open: BTreeMap<u64, Open>,
    /// The largest question so far of each agent program without a limit.
    largest: BTreeMap<String, Spent>,
    /// The account of the run, and the ledger for its requests.
    run: u64,
    day: Day,
    /// Reports each reservation that is settled or released.
    freed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Node {
    account: Account,
    around: Option<u64>,
    /// The reserve for other requests.
    keep: Keep,
    /// The amounts, by reservation, that the answers so far add to the request for which money is reserved.
    echoes: BTreeMap<u64, Spent>,
    /// The first turns in this account that reserved something.
    turns: BTreeSet<u64>,
    /// A turn that has sent nothing yet: it is entitled to a share of the remaining budget.
    waits: bool,
    /// The number of turns that wait in this account, itself included.
    waiting: u64,
    /// The reservation for a later request of this turn.
    kept: Option<u64>,
    /// The reservation that the next request of this turn replaces.
    due: Option<u64>,
    /// The turn is over and sends nothing more.
    closed: bool,
    /// Its last refused request would fit if the requests of other sessions that are running cost nothing.
    fits_later: bool,
    /// The thread whose requests it pays.
    thread: Option<Arc<str>>,
    used: Used,
}

/// A reservation.
#[derive(Debug)]
struct Open {
    owner: u64,
    sent: bool,
    /// The amount that is charged if the usage stays unknown.
    lost: Spent,
    /// The amount that each token of the answer adds to the request for which money is reserved.
    keep: Keep,
    usage: Usage,
    agent: Option<String>,
    payer: Option<Arc<Payer>>,
    priced: bool,
}

impl Open {
    /// Returns the entry of a request that has spent this; `None` if it is charged to no member.
    fn entry(&self, spent: &Spent, usage: &Usage) -> Option<Entry> {
        let payer = self.payer.as_ref()?;
        let now = jiff::Timestamp::now();
        Some(Entry::new(payer, now, spent, usage, self.priced))
    }

    /// Returns what a request has spent, as a lower bound if its price is not known.
    fn counted(&self, spent: Spent) -> Spent {
        let pays = |payer: &Arc<Payer>| matches!(payer.billing, Billing::Key | Billing::Unknown);
        let is_paid = spent.tokens > 0 && self.payer.as_ref().is_some_and(pays);
        match is_paid && !self.priced && spent.pico_usd == 0 {
            true => Spent {
                certainty: spent.certainty.and(Certainty::AtLeast),
                ..spent
            },
            false => spent,
        }
    }

    /// Returns the entry of a request that has spent the most that it may.
    fn at_most(&self) -> Option<Entry> {
        self.entry(&self.lost, &self.usage)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut books = lock(&self.books);
        books.release_kept(self.id);
        books.stop_waiting(self.id);
        books.nodes.remove(&self.id);
    }
}

impl Default for Spending {
    /// Creates an account without limits.
    fn default() -> Self {
        Self::new(Ceiling::default())
    }
}

impl Spending {
    /// Creates the account of a run.
    pub fn new(ceiling: Ceiling) -> Self {
        Self::recorded(ceiling, Day::default())
    }

    /// Creates the account of a run that records its requests in a ledger and also respects the daily limit.
    pub fn recorded(ceiling: Ceiling, day: Day) -> Self {
        let books = Arc::new(Mutex::new(Books {
            day,
            ..Books::default()
        }));
        let run = Self::open(Arc::clone(&books), None, Account::new(ceiling), None);
        lock(&books).run = run.0.id;
        run
    }

    /// Returns the same account, charged to this member's model.
    #[must_use]
    pub fn paid_by(&self, payer: Payer) -> Self {
        Self(Arc::clone(&self.0), Some(Arc::new(payer)))
    }

    /// Names the thread of this account, for the records of its requests.
    pub fn of_thread(self, thread: &str) -> Self {
        if let Some(node) = lock(&self.0.books).nodes.get_mut(&self.0.id) {
            node.thread = Some(thread.into());
        }
        self
    }

    /// Returns the thread of this account or of one around it.
    pub fn thread(&self) -> Option<Arc<str>> {
        let books = lock(&self.0.books);
        let path = books.path(self.0.id);
        let mut nodes = path.iter().filter_map(|id| books.nodes.get(id));
        nodes.find_map(|node| node.thread.clone())
    }

    /// Reserves the amount that a request of an earlier run may still spend, even if it exceeds the limits.
    pub(crate) fn resume(&self, most: Spent, usage: Usage, price: Option<Price>) -> Permit {
        let mut books = lock(&self.0.books);
        let run = books.run;
        let reservation = books.next();
        for id in books.path(run) {
            if let Some(node) = books.nodes.get_mut(&id) {
                node.account.hold(reservation, most);
            }
        }
        let open = Open {
            owner: run,
            sent: false,
            lost: most,
            keep: Keep::default(),
            usage,
            agent: None,
            payer: self.1.clone(),
            priced: price.is_some(),
        };
        books.open.insert(reservation, open);
        drop(books);
        self.permit(reservation, None, price)
    }

    /// Creates a sub-account with its own limits.
    #[must_use]
    pub fn within(&self, ceiling: Ceiling) -> Self {
        let books = Arc::clone(&self.0.books);
        Self::open(books, Some(self.clone()), Account::new(ceiling), None)
    }

    /// Creates the account of one turn, which must leave `keep` for others. Turns that have sent nothing yet share the
    /// rest equally.
    #[must_use]
    pub fn turn(&self, keep: impl Into<Keep>) -> Self {
        let books = Arc::clone(&self.0.books);
        let keep = keep.into();
        if keep.is_nothing() {
            // This is the request that money was kept for.
            lock(&books).forget_echoes(self.0.id);
        }
        Self::open(books, Some(self.clone()), Account::default(), Some(keep))
    }

    fn open(
        books: Arc<Mutex<Books>>,
        around: Option<Spending>,
        account: Account,
        turn: Option<Keep>,
    ) -> Self {
        let mut open = lock(&books);
        let id = open.next();
        open.nodes.insert(
            id,
            Node {
                account,
                around: around.as_ref().map(|s| s.0.id),
                keep: turn.unwrap_or_default(),
                waits: turn.is_some(),
                ..Node::default()
            },
        );
        if turn.is_some() {
            open.each_of(id, |node| node.waiting += 1);
        }
        drop(open);
        let payer = around.as_ref().and_then(|around| around.1.clone());
        let handle = Handle {
            books,
            id,
            _around: around,
        };
        Self(Arc::new(handle), payer)
    }

    /// Reserves the worst case of a request. If it does not fit, the permit sets a lower limit for the answer.
    ///
    /// # Errors
    /// [`FailureKind::Limit`] if it does not fit even with the shortest answer.
    pub fn reserve(&self, worst: Worst) -> Result<Permit, Failure> {
        let mut books = lock(&self.0.books);
        books.keep_to_the_day()?;
        let path = books.path(self.0.id);
        if !books.may_reserve(&path, &worst) {
            return Err(no_price());
        }
        books.release_due(self.0.id);
        let input = worst.bytes.saturating_add(FRAMING_TOKENS);
        let mut keep = books.keep(&path);
        let mut answer = books.bound(&path, input, &worst, keep, None);
        let mut most = Spent::of(input, answer.unwrap_or(0).into(), worst.price);
        if books.goes_first(&path, keep) && books.fits(&path, most, keep, answer).is_err() {
            keep = Keep::default();
            answer = books.bound(&path, input, &worst, keep, None);
            most = Spent::of(input, answer.unwrap_or(0).into(), worst.price);
        }
        if books.is_shortened_by_others(&path, input, &worst, keep, answer) {
            return Err(running());
        }
        let (lost, usage) = match answer {
            Some(output) => {
                let usage = Usage {
                    input_tokens: input,
                    output_tokens: output.into(),
                    cost_usd: (most.pico_usd > 0).then(|| most.usd()),
                    certainty: Certainty::AtMost,
                    ..Usage::default()
                };
                (most.bound(), usage)
            }
            None => uncounted(),
        };
        let open = Open {
            owner: self.0.id,
            sent: false,
            lost,
            keep,
            usage,
            agent: None,
            payer: self.1.clone(),
            priced: worst.price.is_some(),
        };
        let reservation = books.hold(&path, most, answer, open)?;
        drop(books);
        Ok(self.permit(reservation, answer, worst.price))
    }

    /// Reserves a question to an agent program: the cost of the largest question to this agent so far, or the budget
    /// that the program enforces itself.
    ///
    /// # Errors
    /// [`FailureKind::Limit`] if a limit forbids it.
    pub fn reserve_program(
        &self,
        agent: &str,
        budget_pico_usd: Option<u64>,
    ) -> Result<Permit, Failure> {
        let mut books = lock(&self.0.books);
        books.keep_to_the_day()?;
        let path = books.path(self.0.id);
        let seen = books.largest.get(agent).copied().unwrap_or_default();
        let most = Spent {
            calls: 1,
            tokens: seen.tokens,
            pico_usd: budget_pico_usd.unwrap_or(seen.pico_usd),
            certainty: Certainty::AtLeast,
        };
        let mut keep = books.keep(&path);
        if books.goes_first(&path, keep) && books.fits(&path, most, keep, None).is_err() {
            keep = Keep::default();
        }
        let open = Open {
            owner: self.0.id,
            sent: false,
            lost: most,
            keep,
            usage: Usage {
                cost_usd: budget_pico_usd.map(|_| most.usd()),
                ..uncounted().1
            },
            agent: Some(agent.to_owned()),
            payer: self.1.clone(),
            priced: false,
        };
        let reservation = books.hold(&path, most, None, open)?;
        drop(books);
        Ok(self.permit(reservation, None, None))
    }

    fn permit(&self, reservation: u64, answer: Option<u32>, price: Option<Price>) -> Permit {
        Permit {
            account: self.clone(),
            reservation,
            answer,
            price,
        }
    }

    /// Returns the share of the remaining money that the turn's next question may cost, in pico-dollars. `None` without
    /// a money limit.
    pub fn share_pico_usd(&self) -> Option<u64> {
        let mut books = lock(&self.0.books);
        // The reservation reports errors of the daily limit.
        let _ = books.keep_to_the_day();
        let path = books.path(self.0.id);
        let keep = books.keep(&path);
        // A program that writes the conclusion gets a share too: its price is not known in advance.
        let concludes = keep.fixed.calls > 0 && keep.fixed.pico_usd == 0;
        let share = |id: &u64| {
            let left = books.nodes.get(id)?.account.left_pico_usd(keep.fixed)?;
            let among = books.among(*id, &path) + keep.others;
            Some(left / (among + u64::from(concludes)))
        };
        path.iter().filter_map(share).min()
    }

    /// Keeps room for a later request of this turn, if the limits also leave room for the next request, for the turns that
    /// still wait, and for the reserve; each may cost as much as this one. Returns whether it is kept. Given back by
    /// [`Spending::use_kept`], and when the turn ends.
    pub(crate) fn keep_for_later(&self, worst: Worst) -> bool {
        let mut books = lock(&self.0.books);
        let path = books.path(self.0.id);
        if books.keep_to_the_day().is_err() || !books.may_reserve(&path, &worst) {
            return false;
        }
        if books.ceilings(&path).all(|c| c == Ceiling::default()) {
            return true;
        }
        let input = worst.bytes.saturating_add(FRAMING_TOKENS);
        let most = Spent::of(input, worst.answer.unwrap_or(0).into(), worst.price);
        let keep = books.keep(&path);
        let Some(node) = books.nodes.get(&self.0.id) else {
            return false;
        };
        let due = u64::from(node.due.is_some());
        let fits = |id: &u64| {
            let Some(node) = books.nodes.get(id) else {
                return true;
            };
            let others = books.among(*id, &path) + keep.others;
            let all = most.times((others + 1).saturating_sub(due)) + keep.fixed;
            node.account.fits(all).is_ok()
        };
        if !path.iter().all(fits) {
            return false;
        }
        let open = Open {
            owner: self.0.id,
            sent: false,
            lost: most,
            keep: Keep::default(),
            usage: Usage::default(),
            agent: None,
            payer: self.1.clone(),
            priced: worst.price.is_some(),
        };
        let reservation = books.next();
        books.open.insert(reservation, open);
        for id in &path {
            if let Some(node) = books.nodes.get_mut(id) {
                node.account.hold(reservation, most);
            }
        }
        if let Some(node) = books.nodes.get_mut(&self.0.id) {
            node.kept = Some(reservation);
        }
        true
    }

    /// Lets the next request of this turn take the room that was kept: it is given back in the moment in which that request is
    /// reserved, so that no other turn can take it.
    pub(crate) fn use_kept(&self) {
        let mut books = lock(&self.0.books);
        books.release_due(self.0.id);
        if let Some(node) = books.nodes.get_mut(&self.0.id) {
            node.due = node.kept.take();
        }
    }

    /// Returns whether a limit can refuse a request.
    pub(crate) fn is_limited(&self) -> bool {
        let books = lock(&self.0.books);
        let path = books.path(self.0.id);
        books.day.usd.is_some() || books.ceilings(&path).any(|c| c != Ceiling::default())
    }

    /// Returns a receiver of the reservations that are settled or released from now on.
    pub(crate) fn freed(&self) -> watch::Receiver<()> {
        lock(&self.0.books).freed.subscribe()
    }

    /// Returns whether the request of this turn that was refused last may fit once running requests of other sessions
    /// have ended, and whether there are any.
    pub(crate) fn may_fit_later(&self) -> (bool, bool) {
        let books = lock(&self.0.books);
        let path = books.path(self.0.id);
        let fits = books.nodes.get(&self.0.id).is_some_and(|n| n.fits_later);
        (fits, books.running_elsewhere(&path).next().is_some())
    }

    /// Returns whether tokens or money are limited.
    pub fn bounds_answers(&self) -> bool {
        let mut books = lock(&self.0.books);
        let _ = books.keep_to_the_day();
        let path = books.path(self.0.id);
        books.ceilings(&path).any(|c| c.bounds_answers())
    }

    /// Returns the amounts spent so far.
    pub fn used(&self) -> Spent {
        let books = lock(&self.0.books);
        let node = books.nodes.get(&self.0.id);
        node.map_or_else(Spent::default, |node| node.account.used())
    }

    /// Ends a turn: charges requests with unknown usage in full. Returns the turn's usage.
    pub fn close(&self) -> Used {
        let mut books = lock(&self.0.books);
        books.release_kept(self.0.id);
        let held = books.nodes.get(&self.0.id).map(|node| &node.account);
        let held: Vec<u64> = held.into_iter().flat_map(Account::held).collect();
        for reservation in held {
            // The account of a turn also holds what turns inside it reserved.
            if books
                .open
                .get(&reservation)
                .is_some_and(|open| open.owner == self.0.id)
            {
                books.lose(reservation);
            }
        }
        books.stop_waiting(self.0.id);
        let Some(node) = books.nodes.get_mut(&self.0.id) else {
            return Used::default();
        };
        node.closed = true;
        node.used
    }

    /// Returns a turn's usage so far.
    pub fn told(&self) -> Used {
        let books = lock(&self.0.books);
        let node = books.nodes.get(&self.0.id);
        node.map_or_else(Used::default, |node| node.used)
    }
}

impl Permit {
    /// Returns the maximum tokens of the answer; `None` is no limit.
    pub fn answer(&self) -> Option<u32> {
        self.answer
    }

    /// Marks the request as sent; call this right before sending.
    ///
    /// # Errors
    /// The turn was closed meanwhile, and its reservation with it: the request would not be charged, so it must not be
    /// sent.
    pub async fn sending(&self) -> Result<(), Failure> {
        let (ledger, most, under) = {
            let mut books = lock(&self.account.0.books);
            let (ledger, day) = (books.day.ledger.clone(), books.day.usd.map(pico));
            let Some(open) = books.open.get_mut(&self.reservation) else {
                return Err(over());
            };
            match ledger {
                Some(ledger) if !open.sent => {
                    let under = day.and_then(|day| Some((open.at_most()?, day)));
                    (ledger, open.lost, under)
                }
                _ => {
                    open.sent = true;
                    return Ok(());
                }
            }
        };
        // The books are not held while the ledger writes: other requests are announced meanwhile.
        let mut announced = Announced {
            ledger: Some(&*ledger),
            reservation: self.reservation,
        };
        if let Some((at_most, day)) = under
            && let Err(why) = ledger.begins(self.reservation, at_most, day)
        {
            announced.ledger = None;
            return Err(unnoted(&why));
        }
        let noted = ledger.sending(self.reservation, &most).await;
        if let Err(why) = noted {
            ledger.ended(self.reservation);
            announced.ledger = None;
            return Err(unnoted(&why));
        }
        let mut books = lock(&self.account.0.books);
        let Some(open) = books.open.get_mut(&self.reservation) else {
            drop(books);
            return Err(over());
        };
        open.sent = true;
        announced.ledger = None;
        Ok(())
    }

    /// Returns what the request may spend at most, and the same as usage; `None` if its turn is over.
    pub(crate) fn most(&self) -> Option<(Spent, Usage)> {
        let books = lock(&self.account.0.books);
        let open = books.open.get(&self.reservation)?;
        Some((open.lost, open.usage))
    }

    /// Releases the reservation: the request was never sent.
    pub fn unsent(self) {
        lock(&self.account.0.books).release(self.reservation);
    }

    /// Charges the whole reservation as a bound: what the request has spent cannot be known.
    pub(crate) fn unknown(self) {
        let mut books = lock(&self.account.0.books);
        if let Some(open) = books.open.get(&self.reservation) {
            let (lost, usage) = (open.lost, open.usage);
            books.book(self.reservation, lost, &usage);
        }
    }

    /// Charges only the call: the service rejected the request.
    pub fn refused(self) {
        let none = Spent {
            calls: 1,
            ..Spent::default()
        };
        lock(&self.account.0.books).book(self.reservation, none, &Usage::default());
    }

    /// Charges the actual usage; without token counts, charges the reservation in full. Returns a notice if a limit is
    /// exceeded, because more was used than was reserved.
    #[must_use]
    pub fn settle(self, usage: Option<&Usage>) -> Option<String> {
        let mut books = lock(&self.account.0.books);
        match usage.filter(|usage| usage.counts_tokens() || usage.cost_usd.is_some()) {
            Some(usage) => {
                let spent = Spent::of_turn(1, usage, self.price);
                let most = books.open.get(&self.reservation)?.lost;
                books.book(self.reservation, spent, usage);
                let path = books.path(self.account.0.id);
                let nodes = path.iter().filter_map(|id| books.nodes.get(id));
                let exceeded = nodes.map(|node| &node.account).find_map(exceeded)?;
                let more = spent.tokens > most.tokens || spent.pico_usd > most.pico_usd;
                let [spent, most] = [spent, most].map(|amount| amount.words(", "));
                more.then(|| format!("{exceeded} is exceeded: {spent} reported, {most} reserved"))
            }
            None => {
                books.lose(self.reservation);
                None
            }
        }
    }
}

/// Returns the limit that is exceeded.
fn exceeded(account: &Account) -> Option<&'static str> {
    account.fits(Spent::default()).err().map(Cut::words)
}

/// A request that the ledger may have recorded already. If it is not sent, because its turn ends first, the ledger is
/// notified that it has spent nothing. The future that waits for the ledger is dropped before this is.
struct Announced<'l> {
    ledger: Option<&'l dyn Ledger>,
    reservation: u64,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(ledger) = self.ledger {
            ledger.settled(self.reservation, &Spent::default());
            ledger.ended(self.reservation);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.account.0.books).lose(self.reservation);
    }
}

impl Books {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Lowers the run's money limit to the remaining amount for the day, because other runs spend from it too.
    fn keep_to_the_day(&mut self) -> Result<(), Failure> {
        let Some(usd) = self.day.usd else {
            return Ok(());
        };
        let today = self.day.ledger.as_ref().and_then(|ledger| ledger.today());
        let (Some(today), Some(node)) = (today, self.nodes.get_mut(&self.run)) else {
            if let Some(ledger) = &self.day.ledger {
                ledger.exhausted();
            }
            return Err(no_ledger());
        };
        let left = pico(usd).saturating_sub(today);
        node.account.leave_money(left);
        Ok(())
    }

    /// Returns an account and all enclosing ones.
    fn path(&self, id: u64) -> Vec<u64> {
        let around = |id: &u64| self.nodes.get(id).and_then(|node| node.around);
        std::iter::successors(Some(id), around).collect()
    }

    fn ceilings(&self, path: &[u64]) -> impl Iterator<Item = Ceiling> {
        let nodes = path.iter().filter_map(|id| self.nodes.get(id));
        nodes.map(|node| node.account.ceiling())
    }

    /// Returns the reserve that a turn must leave for others, including the amounts that earlier answers add.
    fn keep(&self, path: &[u64]) -> Keep {
        let nodes = path.iter().filter_map(|id| self.nodes.get(id));
        nodes.fold(Keep::default(), |sum, node| {
            let echoes = node.echoes.values().fold(Spent::default(), |s, e| s + *e);
            Keep {
                fixed: sum.fixed + node.keep.fixed + echoes,
                each_token: sum.each_token + node.keep.each_token,
                others: sum.others + node.keep.others,
            }
        })
    }

    /// Returns whether a turn takes precedence over the conclusion of its answer and others.
    fn goes_first(&self, path: &[u64], keep: Keep) -> bool {
        let [turn, around, ..] = path else {
            return false;
        };
        let first = |node: &Node| node.turns.len() < TURNS_FIRST || node.turns.contains(turn);
        keep.each_token != Spent::default() && self.nodes.get(around).is_some_and(first)
    }

    /// Clears the reserve: the request that it was kept for starts now.
    fn forget_echoes(&mut self, account: u64) {
        if let Some(node) = self.nodes.get_mut(&account) {
            node.echoes.clear();
        }
    }

    /// Checks that a request fits in every account of a path, in addition to the reserve.
    fn fits(
        &self,
        path: &[u64],
        most: Spent,
        keep: Keep,
        answer: Option<u32>,
    ) -> Result<(), Failure> {
        let left = keep.fixed + keep.echo(answer.unwrap_or(0).into());
        for node in path.iter().filter_map(|id| self.nodes.get(id)) {
            if let Err(cut) = node.account.fits(most + left) {
                return Err(refusal(cut, &node.account, most, left));
            }
        }
        Ok(())
    }

    /// Returns the requests that other sessions of the run have sent and that are still running.
    fn running_elsewhere(&self, path: &[u64]) -> impl Iterator<Item = u64> {
        let session = |path: &[u64]| path.len().checked_sub(2).map(|at| path[at]);
        let ours = session(path);
        let open = self.open.iter();
        let other = move |open: &Open| ours.is_some() && session(&self.path(open.owner)) != ours;
        open.filter(move |(_, open)| open.sent && other(open))
            .map(|(reservation, _)| *reservation)
    }

    /// Returns the account of the run without the running requests of other sessions: most cost much less than what is
    /// reserved for them. `None` if there are none.
    fn without_others(&self, path: &[u64]) -> Option<Account> {
        let mut running = self.running_elsewhere(path).peekable();
        running.peek()?;
        let mut account = self.nodes.get(&self.run)?.account.clone();
        running.for_each(|reservation| {
            account.release(reservation);
        });
        Some(account)
    }

    /// Returns whether a request that does not fit now may fit when the running requests of other sessions have ended.
    fn fits_later(&self, path: &[u64], most: Spent, keep: Keep, answer: Option<u32>) -> bool {
        let Some(inside) = path.strip_suffix(&[self.run]) else {
            return false;
        };
        let left = keep.fixed + keep.echo(answer.unwrap_or(0).into());
        let fits = |account: Account| account.fits(most + left).is_ok();
        self.without_others(path).is_some_and(fits) && self.fits(inside, most, keep, answer).is_ok()
    }

    /// Counts the turns that share the rest of an account with the asking turn, including that turn. The sessions of a
    /// run do not share: a request waits for those of others.
    fn among(&self, account: u64, path: &[u64]) -> u64 {
        let account = match path {
            [.., session, run] if *run == account && path.len() > 2 => *session,
            _ => account,
        };
        let waiting = self.nodes.get(&account).map_or(0, |node| node.waiting);
        let asks = path.first().and_then(|asks| self.nodes.get(asks));
        let asks_first = asks.is_some_and(|node| node.waits);
        waiting.saturating_sub(u64::from(asks_first)) + 1
    }

    /// Returns whether the worst case of a request is known as far as the limits need it.
    fn may_reserve(&self, path: &[u64], worst: &Worst) -> bool {
        worst.price.is_some() || self.ceilings(path).all(|c| c.micro_usd.is_none())
    }

    /// Gives back what the next request of a turn replaces.
    fn release_due(&mut self, turn: u64) {
        let due = self.nodes.get_mut(&turn).and_then(|node| node.due.take());
        if let Some(reservation) = due {
            self.release(reservation);
        }
    }

    /// Gives back everything that a turn keeps for itself.
    fn release_kept(&mut self, turn: u64) {
        self.release_due(turn);
        let kept = self.nodes.get_mut(&turn).and_then(|node| node.kept.take());
        if let Some(reservation) = kept {
            self.release(reservation);
        }
    }

    /// Changes an account and all enclosing ones.
    fn each_of(&mut self, id: u64, change: impl Fn(&mut Node)) {
        let mut next = Some(id);
        while let Some(node) = next.and_then(|id| self.nodes.get_mut(&id)) {
            change(node);
            next = node.around;
        }
    }

    /// A turn has sent its first request, or is over: it no longer waits for a share.
    fn stop_waiting(&mut self, turn: u64) {
        let node = self.nodes.get_mut(&turn);
        if node.is_some_and(|node| std::mem::take(&mut node.waits)) {
            self.each_of(turn, |node| node.waiting -= 1);
        }
    }

    /// Returns an answer limit that fits: the requested limit, the limit that its share allows, or the minimum. `top`
    /// replaces the account of the run.
    fn bound(
        &self,
        path: &[u64],
        input: u64,
        worst: &Worst,
        keep: Keep,
        top: Option<&Account>,
    ) -> Option<u32> {
        let price = worst.price.unwrap_or_default();
        let room = |id: &u64| {
            let own = &self.nodes.get(id)?.account;
            let account = top.filter(|_| *id == self.run).unwrap_or(own);
            account.room(input, price, keep, self.among(*id, path) + keep.others)
        };
        let Some(room) = path.iter().filter_map(room).min() else {
            return worst.answer;
        };
        let wanted = worst.answer.unwrap_or(ANSWER_TOKENS);
        let least = wanted.min(ANSWER_TOKENS_MIN);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        Some(room.min(wanted).max(least))
    }

    /// Returns whether the answer could be longer if the running requests of other sessions cost nothing. The request
    /// then waits for them.
    fn is_shortened_by_others(
        &mut self,
        path: &[u64],
        input: u64,
        worst: &Worst,
        keep: Keep,
        answer: Option<u32>,
    ) -> bool {
        let wanted = worst.answer.unwrap_or(ANSWER_TOKENS);
        if answer.is_none_or(|answer| answer >= wanted) {
            return false;
        }
        let Some(top) = self.without_others(path) else {
            return false;
        };
        let waits = self.bound(path, input, worst, keep, Some(&top)) > answer;
        if let Some(turn) = path.first().and_then(|turn| self.nodes.get_mut(turn)) {
            turn.fits_later = waits;
        }
        waits
    }

    /// Reserves in every account of a path, or in none.
    fn hold(
        &mut self,
        path: &[u64],
        most: Spent,
        answer: Option<u32>,
        open: Open,
    ) -> Result<u64, Failure> {
        let mut nodes = path.iter().filter_map(|id| self.nodes.get(id));
        if nodes.any(|node| node.closed) {
            return Err(over());
        }
        let fits = self.fits(path, most, open.keep, answer);
        let fits_later = fits.is_err() && self.fits_later(path, most, open.keep, answer);
        if let Some(node) = path.first().and_then(|id| self.nodes.get_mut(id)) {
            node.fits_later = fits_later;
        }
        if let Err(failure) = fits {
            if let Some(ledger) = &self.day.ledger
                && !fits_later
                && self.fits(&[self.run], most, open.keep, answer).is_err()
            {
                ledger.exhausted();
            }
            return Err(failure);
        }
        let reservation = self.next();
        for id in path {
            if let Some(node) = self.nodes.get_mut(id) {
                node.account.hold(reservation, most);
            }
            self.stop_waiting(*id);
        }
        if let [turn, around, ..] = path
            && let Some(node) = self.nodes.get_mut(around)
            && node.turns.len() < TURNS_FIRST
        {
            node.turns.insert(*turn);
        }
        self.echo(reservation, &open, answer.unwrap_or(0).into());
        self.open.insert(reservation, open);
        Ok(reservation)
    }

    /// Records in the enclosing account how much a running request with this reservation has added so far, if its answer
    /// has `tokens` tokens.
    fn echo(&mut self, reservation: u64, open: &Open, tokens: u64) {
        let around = self.nodes.get(&open.owner).and_then(|node| node.around);
        let Some(node) = around.and_then(|id| self.nodes.get_mut(&id)) else {
            return;
        };
        let echo = open.keep.echo(tokens);
        node.echoes.remove(&reservation);
        if echo != Spent::default() {
            node.echoes.insert(reservation, echo);
        }
    }

    /// Releases a reservation.
    fn release(&mut self, reservation: u64) {
        if let Some(open) = self.open.remove(&reservation) {
            self.settled(reservation, &open, &Spent::default(), None);
            self.echo(reservation, &open, 0);
            for id in self.path(open.owner) {
                if let Some(node) = self.nodes.get_mut(&id) {
                    node.account.release(reservation);
                }
            }
            self.freed.send_replace(());
        }
    }

    /// Tells the ledger what a request that was sent has spent.
    fn settled(&self, reservation: u64, open: &Open, spent: &Spent, entry: Option<Entry>) {
        let Some(ledger) = &self.day.ledger else {
            return;
        };
        if open.sent {
            ledger.settled(reservation, &open.counted(*spent));
        }
        if let Some(entry) = entry {
            ledger.book(entry);
        }
        // Until now it counted as what it may cost: twice for a moment, and never not at all.
        if open.sent {
            ledger.ended(reservation);
        }
    }

    /// Replaces a reservation by the actual usage.
    fn book(&mut self, reservation: u64, spent: Spent, usage: &Usage) {
        let Some(open) = self.open.remove(&reservation) else {
            return;
        };
        self.settled(reservation, &open, &spent, open.entry(&spent, usage));
        self.echo(reservation, &open, usage.output_tokens);
        let usage = match &open.payer {
            Some(payer) => usage.billed(payer.billing, open.priced || spent.pico_usd > 0),
            None => *usage,
        };
        for id in self.path(open.owner) {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.account.settle(reservation, spent);
                node.used.requests += 1;
                node.used.usage.add(&usage);
                node.used.usage.repeats = node.used.requests - 1;
            }
        }
        if let Some(agent) = open.agent {
            let seen = self.largest.entry(agent).or_default();
            seen.tokens = seen.tokens.max(spent.tokens);
            seen.pico_usd = seen.pico_usd.max(spent.pico_usd);
        }
        self.freed.send_replace(());
    }

    /// Settles a request of unknown usage: charged in full if it was sent, released if not.
    fn lose(&mut self, reservation: u64) {
        match self.open.get(&reservation) {
            Some(open) if open.sent => {
                let (lost, usage) = (open.lost, open.usage);
                self.book(reservation, lost, &usage);
            }
            _ => self.release(reservation),
        }
    }
}

/// Returns the charge for a request of unknown usage and without a limit.
fn uncounted() -> (Spent, Usage) {
    let spent = Spent {
        calls: 1,
        certainty: Certainty::AtLeast,
        ..Spent::default()
    };
    let usage = Usage {
        certainty: Certainty::AtLeast,
        ..Usage::default()
    };
    (spent, usage)
}

fn running() -> Failure {
    Failure::new(
        FailureKind::Limit,
        "not sent: too little is left while other requests are running",
    )
    .advise("wait for what is running, or raise the limit")
}

fn over() -> Failure {
    Failure::new(FailureKind::Cancelled, "not sent: the turn is over")
}

fn unnoted(why: &NotSent) -> Failure {
    if let NotSent::Limit(_) = why {
        return Failure::new(FailureKind::Limit, format!("not sent: {why}"))
            .advise("wait for what is running, or raise the limit");
    }
    let what = format!("not sent: what it may spend could not be recorded ({why})");
    Failure::new(FailureKind::Limit, what).advise("see whether the disk is full, and try again")
}

fn no_ledger() -> Failure {
    Failure::new(
        FailureKind::Limit,
        "not sent: `limits.usd_per_day` is set, and today's spending cannot be read or recorded",
    )
    .advise("`kd cost` says why; or unset `limits.usd_per_day`")
}

fn no_price() -> Failure {
    Failure::new(
        FailureKind::Limit,
        "not sent: there is a cost limit, and the price of this model is unknown",
    )
    .advise("`kd prices` lists known prices; set `providers.<name>.prices.<model>.input` and `.output`, or remove the cost limit")
}

/// Builds the failure for a request that was not allowed.
fn refusal(cut: Cut, account: &Account, most: Spent, keep: Spent) -> Failure {
    let ceiling = account.ceiling();
    let used = account.committed() + keep;
    let left = |limit: Option<u64>, used: u64| limit.unwrap_or(0).saturating_sub(used);
    let usd = |pico: u64| format!("${:.4}", pico as f64 / 1e12);
    let (left, needs, raise) = match cut {
        Cut::Calls => (
            format!("{} calls", left(ceiling.calls, used.calls)),
            format!("{} call", most.calls),
            "limits.calls",
        ),
        Cut::Money => (
            usd(account.left_pico_usd(keep).unwrap_or(0)),
            format!("up to {}", usd(most.pico_usd)),
            match account.is_lowered() {
                true => "limits.usd_per_day",
                false => "limits.usd",
            },
        ),
        _ => (
            format!("{} tokens", left(ceiling.tokens, used.tokens)),
            format!("up to {} tokens", most.tokens),
            "limits.tokens",
        ),
    };
    let held = account.committed() - account.used();
    let held = match cut {
        Cut::Money if held.pico_usd > 0 => {
            format!(" ({} reserved for running requests)", usd(held.pico_usd))
        }
        _ => String::new(),
    };
    Failure::new(
        FailureKind::Limit,
        format!("not sent: {} leaves {left}{held}, and this request needs {needs}", cut.words()),
    )
    .advise(format!("raise the limit (`{raise}`), ask fewer members, or ask for shorter answers with `--max-tokens`"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> Spending {
        Spending::new(Ceiling {
            calls: Some(calls),
            ..Ceiling::default()
        })
    }

    #[test]
    fn what_a_turn_keeps_for_itself_starves_no_other() {
        let run = calls(4);
        let turns = [(); 3].map(|()| run.turn(Spent::default()));
        // All decide before any of them sends, as if each waited for a key.
        let kept = turns
            .each_ref()
            .map(|turn| turn.keep_for_later(Worst::default()));
        assert_eq!(kept, [true, false, false]);
        let sent: Vec<_> = turns
            .iter()
            .map(|turn| turn.reserve(Worst::default()))
            .collect();
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        // The fourth call is for the turn that kept it.
        turns[1].reserve(Worst::default()).unwrap_err();
        turns[0].use_kept();
        turns[1].reserve(Worst::default()).unwrap_err();
        turns[0].reserve(Worst::default()).unwrap();
    }

    #[test]
    fn what_a_turn_keeps_is_given_back_when_it_ends() {
        let run = calls(2);
        let turn = run.turn(Spent::default());
        assert!(turn.keep_for_later(Worst::default()));
        turn.close();
        let next = run.turn(Spent::default());
        assert!(next.keep_for_later(Worst::default()));
        drop(next);
        let [one, two] = [(); 2].map(|()| run.turn(Spent::default()));
        let permits = [one.reserve(Worst::default()), two.reserve(Worst::default())];
        assert!(permits.iter().all(Result::is_ok), "{permits:?}");
    }

    #[test]
    fn tokens_and_money_are_kept_too() {
        let worst = |bytes| Worst {
            bytes,
            answer: Some(ANSWER_TOKENS_MIN),
            price: Some(Price::per_million(1.0, 1.0)),
        };
        let request = 1_000 + FRAMING_TOKENS + u64::from(ANSWER_TOKENS_MIN);
        let limits = [
            |all| Ceiling {
                tokens: Some(all),
                ..Ceiling::default()
            },
            |all| Ceiling {
                micro_usd: Some(all),
                ..Ceiling::default()
            },
        ];
        for limit in limits {
            let turn = |all| Spending::new(limit(all)).turn(Spent::default());
            assert!(turn(2 * request).keep_for_later(worst(1_000)));
            assert!(!turn(2 * request - 1).keep_for_later(worst(1_000)));
        }
        let unpriced = Worst {
            price: None,
            ..worst(1)
        };
        let dear = Spending::new(limits[1](u64::MAX)).turn(Spent::default());
        assert!(!dear.keep_for_later(unpriced));
    }

    /// Answers when the test releases it.
    #[derive(Debug, Default)]
    struct Slow {
        said: Mutex<Vec<String>>,
        settled: Mutex<Vec<Spent>>,
        open: Arc<tokio::sync::Notify>,
    }

    impl Ledger for Slow {
        fn book(&self, _: Entry) {}

        fn today(&self) -> Option<u64> {
            None
        }

        fn sending(&self, reservation: u64, _: &Spent) -> kd_core::ledger::Noted {
            lock(&self.said).push(format!("sending {reservation}"));
            let open = Arc::clone(&self.open);
            Box::pin(async move {
                open.notified().await;
                Ok(())
            })
        }

        fn settled(&self, reservation: u64, spent: &Spent) {
            lock(&self.settled).push(*spent);
            lock(&self.said).push(format!("settled {reservation}: {} calls", spent.calls));
        }
    }

    /// Sums of a batch are kept by its ledger.
    #[tokio::test]
    async fn the_ledger_learns_that_a_price_is_unknown() {
        let price = Some(Price::per_million(1.0, 1.0));
        let usage = |cost_usd| Usage {
            input_tokens: 3,
            cost_usd,
            ..Usage::default()
        };
        for (billing, price, usage, certainty) in [
            (Billing::Key, None, usage(None), Certainty::AtLeast),
            (Billing::Unknown, None, usage(None), Certainty::AtLeast),
            (Billing::Key, price, usage(None), Certainty::Exact),
            (Billing::Key, None, usage(Some(0.5)), Certainty::Exact),
            (Billing::Free, None, usage(None), Certainty::Exact),
            (Billing::Login, None, usage(None), Certainty::Exact),
        ] {
            let ledger = Arc::new(Slow::default());
            ledger.open.notify_one();
            let day = Day {
                ledger: Some(Arc::clone(&ledger) as Arc<dyn Ledger>),
                usd: None,
            };
            let payer = Payer {
                billing,
                ..Payer::default()
            };
            let run = Spending::recorded(Ceiling::default(), day).paid_by(payer);
            let worst = Worst {
                price,
                ..Worst::default()
            };
            let permit = run.reserve(worst).unwrap();
            permit.sending().await.unwrap();
            assert_eq!(permit.settle(Some(&usage)), None);
            let told = lock(&ledger.settled).clone();
            assert_eq!(told[0].certainty, certainty, "{billing:?} {price:?}");
        }
    }

    /// A ledger on another machine must not delay other requests, and must be notified of requests that were not sent.
    #[tokio::test]
    async fn requests_are_announced_together_and_taken_back_if_their_turn_ends_first() {
        let ledger = Arc::new(Slow::default());
        let day = Day {
            ledger: Some(Arc::clone(&ledger) as Arc<dyn Ledger>),
            usd: None,
        };
        let run = Spending::recorded(Ceiling::default(), day);
        let turns = [(); 3].map(|()| run.turn(Spent::default()));
        let permits: Vec<Permit> = turns
            .iter()
            .map(|turn| turn.reserve(Worst::default()).unwrap())
            .collect();
        let mut waiting: Vec<_> = permits.iter().map(|one| Box::pin(one.sending())).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(lock(&ledger.said).len(), 3, "none waits for another");
        // One turn ends while its request is recorded, one request is dropped, one is sent.
        turns[0].close();
        ledger.open.notify_one();
        let failure = waiting.remove(0).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Cancelled);
        drop(waiting.remove(0));
        ledger.open.notify_one();
        waiting.remove(0).await.unwrap();
        assert_eq!(run.used(), Spent::default());
        assert_eq!(turns[2].close().requests, 1);
        let said = lock(&ledger.said).clone();
        let settled = |at: usize, calls| {
            let number = said[at].replace("sending", "settled");
            format!("{number}: {calls} calls")
        };
        assert_eq!(said[3..], [settled(0, 0), settled(1, 0), settled(2, 1)]);
    }

    /// The counts of waiting turns are kept, not computed: after each step of random lives they equal a recount.
    #[test]
    fn the_turns_that_share_the_rest_are_counted_as_they_come_and_go() {
        let mut state = 7_u64;
        let mut drawn = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        let (mut most, mut fewer) = (0, 0);
        for _ in 0..20 {
            let mut accounts = vec![Spending::default()];
            let mut permits = Vec::new();
            for _ in 0..200 {
                let at = drawn(accounts.len());
                match drawn(6) {
                    0 => accounts.push(accounts[at].within(Ceiling::default())),
                    1 | 2 => accounts.push(accounts[at].turn(Spent::default())),
                    3 => permits.extend(accounts[at].reserve(Worst::default())),
                    4 => drop(accounts[at].close()),
                    _ if at > 0 => drop(accounts.remove(at)),
                    _ => drop(permits.pop()),
                }
                let books = lock(&accounts[0].0.books);
                for (id, node) in &books.nodes {
                    let inside = |(other, node): &(&u64, &Node)| {
                        node.waits && books.path(**other).contains(id)
                    };
                    let recount = books.nodes.iter().filter(inside).count() as u64;
                    assert_eq!(node.waiting, recount);
                    fewer += usize::from(recount < most);
                    most = most.max(recount);
                }
                let open: Vec<u64> = books.open.keys().copied().collect();
                let run = &books.nodes[&books.run].account;
                assert_eq!(run.held().collect::<Vec<_>>(), open);
            }
        }
        assert!(most > 5 && fewer > 1000, "{most} {fewer}");
    }

    #[tokio::test]
    async fn a_turn_that_was_closed_sends_nothing_that_it_had_reserved() {
        let run = Spending::default();
        let turn = run.turn(Spent::default());
        let permits = [
            turn.reserve(Worst::default()).unwrap(),
            turn.reserve_program("codex", None).unwrap(),
        ];
        assert_eq!(turn.close(), Used::default());
        for permit in permits {
            let failure = permit.sending().await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Cancelled);
        }
        assert_eq!(run.used(), Spent::default());
        // Requests sent earlier count in full.
        let turn = run.turn(Spent::default());
        let permit = turn.reserve(Worst::default()).unwrap();
        permit.sending().await.unwrap();
        assert_eq!(turn.close().requests, 1);
        assert_eq!(run.used().calls, 1);
    }
}

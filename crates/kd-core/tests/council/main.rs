//! The council, tested from outside: inputs in, commands and events out.
//!
//! The guarantees of a conversation and their tests (modules of this folder unless stated otherwise):
//!
//! | guarantee | test |
//! |---|---|
//! | the first message asks every member once | `modes::the_first_message_is_answered_once_and_later_ones_are_discussed` |
//! | whether a message is the first is read from the files | `modes::mutes_end_with_the_session_and_what_was_said_does_not`, `modes::where_nobody_has_answered_yet_…` |
//! | every row of message × mode × auto | `talk::rows_of_the_table` |
//! | `auto_messages` unset, 0, N | `modes::auto_messages_counts_turns`, `talk::rows_of_the_table` |
//! | `@member`, several, `@all` | `modes::mentions_ask_exactly_those_and_at_all_starts_the_talk_at_once` |
//! | sequential, natural, manual | `modes::sequential_goes_one_by_one_and_natural_draws_an_order`, `modes::manual_answers_only_the_mentioned` |
//! | a mention moves a turn forward and adds none | `modes::a_member_that_is_mentioned_speaks_next_but_nobody_speaks_more`; `protocols/laws.rs` for every mode |
//! | mere agreement ends the round, with the reason | `talk::two_who_only_acknowledge_each_other_end_the_round_and_it_is_said_why` |
//! | a pass is a pass | `talk::a_pass_is_a_pass_and_when_all_have_passed_the_round_is_over` |
//! | muted: not asked, not counted; ends with the session | `modes::the_muted_are_not_asked_whoever_names_them`, `talk::who_is_muted_is_neither_asked_nor_counted`, `modes::mutes_end_with_…` |
//! | an error or a timeout does not stop other members | `modes::who_fails_is_skipped_for_the_rest_of_the_round`, `failures`; `kd-engine/tests/session.rs` |
//! | a retry takes the failed turn's place | `retry::on_disk_in_prompts_and_on_the_screen`, `failures::a_retry_asks_exactly_those_who_failed` |
//! | no prompt contains a failed answer | `failures::a_failed_turn_keeps_what_came_and_never_enters_a_prompt`; the simulator |
//! | messages sent during a round wait, survive a kill, and are answered once | `queue::killed_after_any_step_nothing_is_lost_and_nothing_is_answered_twice`; `kd/tests/chat.rs` with SIGKILL |
//! | no message text can impersonate a member or end the history | `modes::a_prompt_ends_in_who_is_to_speak_whatever_was_said`, `prompt/history.rs`, the simulator |
//! | after Escape no member is asked before the user writes | `queue::interrupted_after_any_step_…`, `aside::escape_after_any_step_…`, the simulator |
//! | a member that answers another process is not asked twice | `others`; `kd/tests/chat.rs`, `tests/kingdom-cli` |
//! | a debate and a deliberation in the same thread | `aside`; `kd/tests/chat.rs` |

#![allow(clippy::unwrap_used)]

mod aside;
mod bench;
mod conclusion;
mod failures;
mod modes;
mod others;
mod queue;
mod retry;
mod road;
mod tags;
mod talk;

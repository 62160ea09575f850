//! Provider batches of a batch: kept in its database, cancelled at the provider.

use crate::error::UserError;
use crate::kingdom::Kingdom;
use kd_backends::Backends;
use kd_backends::collect::{
    self, KeptReply, ParcelError, ParcelItem, ParcelRecord, ParcelResult, ParcelStore,
};
use kd_core::config::Config;
use kd_core::spending::Price;
use kd_sql::batch::{Batches, Parcel};
use kd_store::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest deliberation with provider batches, in milliseconds: a week.
const DELIBERATION_MAX_MS: u64 = 7 * 24 * 3600 * 1000;

/// The provider batches of one batch, in its database.
pub(super) struct Parcels {
    batches: Arc<Mutex<Batches>>,
    batch: String,
}

impl Parcels {
    pub(super) fn new(batches: Arc<Mutex<Batches>>, batch: &str) -> Self {
        Self {
            batches,
            batch: batch.to_owned(),
        }
    }

    fn with<T>(
        &self,
        call: impl FnOnce(&mut Batches) -> Result<T, Error>,
    ) -> Result<T, ParcelError> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut batches).map_err(|error| ParcelError::Store(Box::new(error)))
    }
}

fn record(parcel: Parcel) -> ParcelRecord {
    ParcelRecord {
        name: parcel.name,
        service: parcel.service,
        model: parcel.model,
        remote: parcel.remote,
        at: parcel.at,
        items: parcel
            .items
            .into_iter()
            .map(|item| ParcelItem {
                usage: item.usage(),
                id: item.id,
                digest: item.digest,
                thread: item.thread,
                most: item.most,
            })
            .collect(),
    }
}

fn row(parcel: &ParcelRecord) -> Parcel {
    let item = |item: &ParcelItem| kd_sql::batch::ParcelItem {
        id: item.id.clone(),
        digest: item.digest.clone(),
        thread: item.thread.clone(),
        most: item.most,
        input: item.usage.input_tokens,
        output: item.usage.output_tokens,
    };
    Parcel {
        name: parcel.name.clone(),
        service: parcel.service.clone(),
        model: parcel.model.clone(),
        remote: parcel.remote.clone(),
        at: parcel.at,
        items: parcel.items.iter().map(item).collect(),
    }
}

impl ParcelStore for Parcels {
    fn open(&self) -> Result<Vec<ParcelRecord>, ParcelError> {
        let parcels = self.with(|batches| batches.parcels(&self.batch))?;
        Ok(parcels.into_iter().map(record).collect())
    }

    fn kept(&self) -> Result<Vec<KeptReply>, ParcelError> {
        let kept = self.with(|batches| batches.parcel_replies(&self.batch))?;
        let reply = |(id, digest)| KeptReply { id, digest };
        Ok(kept.into_iter().map(reply).collect())
    }

    fn take(&self, id: &str, thread: Option<&str>) -> Result<Option<String>, ParcelError> {
        self.with(|batches| batches.take_parcel_reply(id, thread))
    }

    fn sending(&self, parcel: &ParcelRecord) -> Result<(), ParcelError> {
        self.with(|batches| batches.parcel_sending(&self.batch, &row(parcel)))
    }

    fn sent(&self, name: &str, remote: &str) -> Result<(), ParcelError> {
        self.with(|batches| batches.parcel_sent(name, remote))
    }

    fn unsent(&self, name: &str) -> Result<(), ParcelError> {
        self.with(|batches| batches.parcel_unsent(name))
    }

    fn unknown(&self, name: &str) -> Result<(), ParcelError> {
        self.with(|batches| batches.parcel_unknown(&self.batch, name))
    }

    fn ended(&self, name: &str, results: &[ParcelResult]) -> Result<(), ParcelError> {
        let results: Vec<_> = results
            .iter()
            .map(|one| (one.id.as_str(), one.reply.as_deref(), one.spent))
            .collect();
        self.with(|batches| batches.parcel_ended(&self.batch, name, &results))
    }
}

/// Removes time limits that a provider batch would exceed: it takes up to a day.
pub(super) fn untimed(config: &mut Config) {
    config.deliberation.iteration.max_duration_ms = DELIBERATION_MAX_MS;
}

/// Returns the price of a service's tokens in a provider batch, or the normal price if the service has no batch
/// endpoints.
pub(super) fn price(config: &Config, backend: &str, price: Option<Price>) -> Option<Price> {
    let part = kd_backends::providers::batch_price(backend, config.providers.get(backend));
    let part = part.unwrap_or(1.0);
    let scaled = |pico: u64| (pico as f64 * part).ceil() as u64;
    price.map(|price| Price {
        input: scaled(price.input),
        output: scaled(price.output),
    })
}

/// Cancels the provider batches of a batch at their providers. Returns how many, and why others could not be cancelled.
///
/// # Errors
/// If the database cannot be read.
pub async fn cancel_parcels(
    kingdom: &Kingdom,
    batches: &Batches,
    batch: &str,
) -> Result<(u64, Vec<String>), UserError> {
    let parcels: Vec<_> = batches.parcels(batch)?.into_iter().map(record).collect();
    if parcels.is_empty() {
        return Ok((0, Vec::new()));
    }
    let backends = Backends::new(kingdom.config(), kingdom.env().backend_options());
    let (count, failures) = collect::cancel(&backends, &parcels).await;
    let texts = failures.iter().map(|failure| failure.with_advice());
    Ok((count, texts.collect()))
}

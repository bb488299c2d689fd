-- Up Migration

-- Where only time keeps the attempts of a payout apart, a spend limit counts them all: the first out of
-- signed_transactions_recent, later ones out of this.
CREATE INDEX signed_transactions_again ON signer.signed_transactions (asset, at_ms) INCLUDE (units) WHERE attempt > 1;

-- Down Migration

DROP INDEX signer.signed_transactions_again;

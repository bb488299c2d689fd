-- Up Migration

-- What a comparison of ledger and chain costs must not grow with what ever happened. Both sides are sums of parts: what
-- was read before is kept here, what changed since is read anew, and everything is read anew in turn
-- (docs/decisions/0021).

-- Movements of the account `wallet` that are in no sum yet. Each is written by the statement that writes its row of the
-- journal, and moves into `wallet_sums` in one statement: it is always in exactly one of the two.
CREATE TABLE wallet_movements (
  bucket smallint NOT NULL,
  asset text NOT NULL,
  -- Debits of the wallet are positive, credits negative.
  units numeric(78,0) NOT NULL
);
CREATE TABLE wallet_sums (
  bucket smallint NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL,
  PRIMARY KEY (bucket, asset)
);
INSERT INTO wallet_sums (bucket, asset, units)
SELECT bucket, asset, sum(CASE WHEN debit = 'wallet' THEN units ELSE -units END) FROM journal
WHERE debit = 'wallet' OR credit = 'wallet' GROUP BY bucket, asset;

-- All that adding a bucket up takes, in the order of the buckets and without the rows themselves.
CREATE INDEX journal_wallet ON journal (bucket, asset) INCLUDE (debit, units) WHERE debit = 'wallet' OR credit = 'wallet';
DROP INDEX journal_by_asset;

-- Nothing is on its way to or from this address: what it holds is in `resting_balances` and is not asked all the time.
-- Whatever is booked there or leaves there ends the rest.
ALTER TABLE unswept_addresses ADD COLUMN is_resting boolean NOT NULL DEFAULT false;
CREATE INDEX unswept_addresses_awake ON unswept_addresses (chain) WHERE NOT is_resting;

-- What the chain said of an address when it went to rest, if that was anything; and what all of a chain add up to.
CREATE TABLE resting_balances (
  chain text NOT NULL,
  address text NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL CHECK (units > 0),
  PRIMARY KEY (chain, address, asset)
);
CREATE TABLE resting_sums (
  chain text NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL,
  PRIMARY KEY (chain, asset)
);

-- Where the next turn of reading everything anew begins: a bucket of the journal, and a key index.
CREATE TABLE reconciliation_turns (
  chain text PRIMARY KEY,
  next_bucket smallint NOT NULL DEFAULT 0,
  next_index integer NOT NULL DEFAULT 0
);

-- Which coins a live outflow spends, and the largest ones that nobody spends yet.
CREATE INDEX coins_by_spender ON coins (chain, spent_by) WHERE spent_by IS NOT NULL;
DROP INDEX coins_spendable;
CREATE INDEX coins_spendable ON coins (chain, satoshi DESC, tx_hash, output_index) WHERE spent_by IS NULL;

-- A spend limit adds up what was signed in a day, out of the index alone. No sum is kept: whoever could write it could
-- open the limit.
DROP INDEX signer.signed_transactions_recent;
CREATE INDEX signed_transactions_recent ON signer.signed_transactions (asset, at_ms) INCLUDE (units) WHERE attempt = 1;

-- Down Migration

DROP INDEX signer.signed_transactions_recent;
CREATE INDEX signed_transactions_recent ON signer.signed_transactions (asset, at_ms);
DROP INDEX coins_by_spender, coins_spendable, unswept_addresses_awake, journal_wallet;
CREATE INDEX coins_spendable ON coins (chain) WHERE spent_by IS NULL;
CREATE INDEX journal_by_asset ON journal (asset);
ALTER TABLE unswept_addresses DROP COLUMN is_resting;
DROP TABLE reconciliation_turns, resting_sums, resting_balances, wallet_sums, wallet_movements;

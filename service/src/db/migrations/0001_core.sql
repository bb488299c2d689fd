-- Up Migration

-- The service works as a role that may add to the books and the logs but not rewrite them.
DO $$
BEGIN
  CREATE ROLE cambist_service NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
GRANT cambist_service TO CURRENT_USER;
GRANT USAGE ON SCHEMA public TO cambist_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO cambist_service;

-- Money is numeric(78,0): ledger units, exact, as large as a uint256. Times are epoch milliseconds (…_ms).
-- Order-owned tables carry `bucket` (the last two digits of the order id) first in every key.

CREATE TABLE orders (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 99),
  order_id text NOT NULL CHECK (order_id ~ '^CB[0-9]{16}$'),
  account_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  rate_type text NOT NULL CHECK (rate_type IN ('fixed', 'float')),
  from_asset text NOT NULL,
  to_asset text NOT NULL,
  asks numeric(78,0) NOT NULL CHECK (asks > 0),
  promises numeric(78,0) NOT NULL CHECK (promises > 0),
  rate text NOT NULL,
  fee numeric(78,0) NOT NULL CHECK (fee >= 0),
  fee_share integer NOT NULL,
  network_fee numeric(78,0) NOT NULL CHECK (network_fee >= 0),
  destination text NOT NULL,
  destination_tag text,
  refund_address text,
  callback_url text,
  deposit_address text NOT NULL,
  deposit_tag text,
  required_confirmations smallint NOT NULL CHECK (required_confirmations > 0),
  tolerance numeric(78,0) NOT NULL,
  slippage integer NOT NULL,
  token_hash bytea NOT NULL,
  -- HMAC over order id, assets, destination, tag and refund address: the signer obeys this, not the columns.
  seal text NOT NULL,

  status text NOT NULL CHECK (status IN
    ('NEW', 'PENDING', 'EXCHANGE', 'WITHDRAW', 'DONE', 'EXPIRED', 'EMERGENCY', 'REFUND', 'REFUNDED')),
  sequence integer NOT NULL,
  updated_at_ms bigint NOT NULL,
  completed_at_ms bigint,
  emergency_reasons text[] NOT NULL DEFAULT '{}',
  settled_received numeric(78,0),
  settled_paid numeric(78,0),
  settled_rate text,
  settled_fee numeric(78,0),
  settled_network_fee numeric(78,0),
  refund_units numeric(78,0),
  refund_network_fee numeric(78,0),
  payout_id text,
  payout_tx_hash text,
  outflow_count integer NOT NULL DEFAULT 0,
  is_outflow_committed boolean NOT NULL DEFAULT false,
  -- When the exchange is tried next, and since when it has not been possible.
  exchange_due_at_ms bigint NOT NULL DEFAULT 0,
  exchange_trouble_since_ms bigint,

  PRIMARY KEY (bucket, order_id),
  CHECK ((status IN ('DONE', 'REFUNDED')) = (completed_at_ms IS NOT NULL)),
  CHECK (status NOT IN ('WITHDRAW', 'DONE', 'REFUNDED') OR payout_tx_hash IS NOT NULL),
  CHECK ((status = 'EMERGENCY') = (emergency_reasons <> '{}')),
  CHECK (status NOT IN ('REFUND', 'REFUNDED') OR refund_units > 0)
) WITH (fillfactor = 80);

CREATE INDEX orders_by_short_id ON orders (bucket, right(order_id, 8));
CREATE INDEX orders_that_expire ON orders (expires_at_ms) WHERE status = 'NEW';
CREATE INDEX orders_to_exchange ON orders (exchange_due_at_ms) WHERE status = 'EXCHANGE' AND payout_id IS NULL;
CREATE INDEX orders_unfinished ON orders (status, updated_at_ms)
  WHERE status NOT IN ('DONE', 'EXPIRED', 'REFUNDED');

-- Every fact an order was told, once: the same key again changes nothing.
CREATE TABLE facts (
  bucket smallint NOT NULL,
  order_id text NOT NULL,
  fact_key text NOT NULL,
  kind text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('changed', 'ignored')),
  at_ms bigint NOT NULL,
  PRIMARY KEY (bucket, order_id, fact_key),
  FOREIGN KEY (bucket, order_id) REFERENCES orders (bucket, order_id)
);

-- One row for each change of status; the outbox that webhooks, mails and streams read.
CREATE TABLE events (
  bucket smallint NOT NULL,
  order_id text NOT NULL,
  sequence integer NOT NULL,
  previous_status text,
  status text NOT NULL,
  fact_key text NOT NULL,
  -- The order as a client would have seen it at that moment.
  snapshot jsonb NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (bucket, order_id, sequence),
  FOREIGN KEY (bucket, order_id) REFERENCES orders (bucket, order_id)
);

CREATE TABLE deposits (
  bucket smallint NOT NULL,
  order_id text NOT NULL,
  deposit_key text NOT NULL,
  chain text NOT NULL,
  tx_hash text NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL CHECK (units >= 0),
  role text NOT NULL CHECK (role IN ('counted', 'extra', 'dust', 'foreign')),
  is_late boolean NOT NULL,
  state text NOT NULL CHECK (state IN ('seen', 'mined', 'confirmed', 'vanished')),
  seen_at_ms bigint NOT NULL,
  block_height bigint,
  block_hash text,
  PRIMARY KEY (bucket, order_id, deposit_key),
  UNIQUE (bucket, deposit_key),
  FOREIGN KEY (bucket, order_id) REFERENCES orders (bucket, order_id),
  CHECK ((state IN ('mined', 'confirmed')) = (block_hash IS NOT NULL))
);
CREATE INDEX deposits_to_confirm ON deposits (chain, block_height) WHERE state = 'mined';
CREATE INDEX deposits_in_mempool ON deposits (chain) WHERE state = 'seen';
CREATE INDEX deposits_by_block ON deposits (chain, block_hash) WHERE block_hash IS NOT NULL;

-- A small reference table, so that no movement can name an account that does not exist.
CREATE TABLE ledger_accounts (account text PRIMARY KEY);
INSERT INTO ledger_accounts (account) VALUES
  ('wallet'), ('customer_deposits'), ('payouts_owed'), ('refunds_owed'), ('unclaimed'), ('orphaned_deposits'),
  ('exchange_position'), ('fee_income'), ('network_costs'), ('capital');

-- Double entry: a row is a whole movement, so debits equal credits in every asset by construction.
CREATE TABLE journal (
  bucket smallint NOT NULL,
  -- The order, or `house` for movements that belong to none.
  owner text NOT NULL,
  entry_key text NOT NULL,
  line smallint NOT NULL,
  asset text NOT NULL,
  debit text NOT NULL REFERENCES ledger_accounts (account),
  credit text NOT NULL REFERENCES ledger_accounts (account),
  units numeric(78,0) NOT NULL CHECK (units > 0),
  at_ms bigint NOT NULL,
  PRIMARY KEY (bucket, owner, entry_key, line),
  CHECK (debit <> credit)
);
CREATE INDEX journal_by_asset ON journal (asset);

-- Everything that leaves us. At most one live outflow for an order: the obligation is paid once.
CREATE TABLE outflows (
  bucket smallint NOT NULL,
  order_id text NOT NULL,
  payout_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('payout', 'refund', 'filler', 'sweep')),
  chain text NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL CHECK (units >= 0),
  address text NOT NULL,
  tag text,
  state text NOT NULL CHECK (state IN ('planned', 'signed', 'broadcast', 'confirmed', 'failed', 'cancelled')),
  nonce bigint,
  planned_at_ms bigint NOT NULL,
  due_at_ms bigint NOT NULL,
  trouble text,
  trouble_since_ms bigint,
  -- A claim by a worker: until when (wall clock), and the number that grows with every claim.
  claimed_until_wall_ms bigint NOT NULL DEFAULT 0,
  claim_fence bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (bucket, payout_id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX outflows_one_live ON outflows (bucket, order_id)
  WHERE kind IN ('payout', 'refund') AND state IN ('planned', 'signed', 'broadcast');
CREATE UNIQUE INDEX outflows_one_success ON outflows (bucket, order_id)
  WHERE kind IN ('payout', 'refund') AND state = 'confirmed';
CREATE INDEX outflows_due ON outflows (chain, due_at_ms) WHERE state IN ('planned', 'signed', 'broadcast');

-- Exact transactions for an outflow: the intent is stored before it is signed, the bytes before they are sent.
CREATE TABLE attempts (
  bucket smallint NOT NULL,
  payout_id text NOT NULL,
  attempt smallint NOT NULL CHECK (attempt > 0),
  intent jsonb NOT NULL,
  tx_hash text,
  bytes text,
  -- What the network answered last: null before the first broadcast.
  answer text CHECK (answer IN ('accepted', 'refused', 'unknown')),
  drafted_at_ms bigint NOT NULL,
  broadcast_at_ms bigint,
  PRIMARY KEY (bucket, payout_id, attempt),
  FOREIGN KEY (bucket, payout_id) REFERENCES outflows (bucket, payout_id),
  CHECK ((tx_hash IS NULL) = (bytes IS NULL)),
  CHECK (answer IS NULL OR bytes IS NOT NULL)
);

CREATE INDEX attempts_by_tx ON attempts (tx_hash);

-- Addresses of ours, watched for good. Ready ones wait here for an order; only the signer makes them.
CREATE TABLE addresses (
  family text NOT NULL,
  address text NOT NULL,
  purpose text NOT NULL CHECK (purpose IN ('deposit', 'reserve', 'change')),
  key_index integer NOT NULL,
  order_id text,
  chain text,
  assigned_at_ms bigint,
  PRIMARY KEY (family, address),
  UNIQUE (family, purpose, key_index)
);
CREATE INDEX addresses_free ON addresses (family, purpose, key_index) WHERE assigned_at_ms IS NULL;

-- Unspent and spent outputs of ours on coin chains.
CREATE TABLE coins (
  chain text NOT NULL,
  tx_hash text NOT NULL,
  output_index integer NOT NULL,
  satoshi numeric(78,0) NOT NULL CHECK (satoshi > 0),
  address text NOT NULL,
  key_purpose text NOT NULL,
  key_index integer NOT NULL,
  block_height bigint,
  block_hash text,
  spent_by text,
  PRIMARY KEY (chain, tx_hash, output_index)
);
CREATE INDEX coins_spendable ON coins (chain) WHERE spent_by IS NULL;
CREATE INDEX coins_by_block ON coins (chain, block_hash);

-- The next nonce of an account of ours on account chains.
CREATE TABLE account_nonces (
  chain text NOT NULL,
  address text NOT NULL,
  next_nonce bigint NOT NULL,
  PRIMARY KEY (chain, address)
);

-- Transfers to addresses of ours that belong to no order: reserve funding, strays, unlisted tokens.
CREATE TABLE house_deposits (
  chain text NOT NULL,
  deposit_key text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('reserve', 'stray', 'unlisted')),
  tx_hash text NOT NULL,
  address text NOT NULL,
  -- The order whose address it reached, when there is one.
  order_id text,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL,
  state text NOT NULL CHECK (state IN ('mined', 'confirmed', 'orphaned')),
  block_height bigint NOT NULL,
  block_hash text NOT NULL,
  seen_at_ms bigint NOT NULL,
  PRIMARY KEY (chain, deposit_key)
);
CREATE INDEX house_deposits_to_confirm ON house_deposits (chain, block_height) WHERE state = 'mined';
CREATE INDEX house_deposits_by_block ON house_deposits (chain, block_hash);

CREATE TABLE rate_locks (
  rate_id text PRIMARY KEY,
  from_asset text NOT NULL,
  to_asset text NOT NULL,
  from_units numeric(78,0) NOT NULL,
  to_units numeric(78,0) NOT NULL,
  rate text NOT NULL,
  fee numeric(78,0) NOT NULL,
  fee_share integer NOT NULL,
  network_fee numeric(78,0) NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX rate_locks_newest ON rate_locks (from_asset, to_asset, from_units, expires_at_ms DESC);
CREATE INDEX rate_locks_oldest ON rate_locks (expires_at_ms);

-- What makes a repeated POST one act; written in the transaction that acts.
CREATE TABLE retry_slots (
  account_id text NOT NULL,
  slot text NOT NULL,
  body_hash text NOT NULL,
  order_id text NOT NULL,
  -- The answer of an action; a creation's answer is made again from the order.
  answer jsonb,
  at_ms bigint NOT NULL,
  PRIMARY KEY (account_id, slot)
);
CREATE INDEX retry_slots_oldest ON retry_slots (at_ms);

-- One holder at a time; the fence grows with every new holder, and writers check it.
CREATE TABLE leases (
  name text PRIMARY KEY,
  holder text NOT NULL,
  fence bigint NOT NULL,
  expires_wall_ms bigint NOT NULL
);

-- How far each chain was looked at, and how it is doing.
CREATE TABLE chain_heads (
  chain text PRIMARY KEY,
  height bigint NOT NULL,
  hash text NOT NULL,
  -- The node's best height when it was last asked: the lag is the difference.
  node_height bigint NOT NULL,
  -- The service's time at which mempool and blocks had all been looked at.
  looked_at_ms bigint NOT NULL,
  -- The same by the wall clock, which shows a watcher that has stopped.
  looked_wall_ms bigint NOT NULL DEFAULT 0,
  trouble text,
  trouble_since_ms bigint,
  -- After a deep reorganisation nothing leaves on the word of this chain until it has grown this high.
  cautious_until_height bigint NOT NULL DEFAULT 0
);

CREATE TABLE chain_blocks (
  chain text NOT NULL,
  height bigint NOT NULL,
  hash text NOT NULL,
  PRIMARY KEY (chain, height)
);

-- What could be paid out of each asset when the chain was last asked, and what a payout of it costs.
CREATE TABLE reserves (
  asset text PRIMARY KEY,
  spendable numeric(78,0) NOT NULL,
  payout_cost numeric(78,0) NOT NULL,
  at_ms bigint NOT NULL
);

-- Ledger against chain, as last compared.
CREATE TABLE reconciliations (
  asset text PRIMARY KEY,
  ledger_units numeric(78,0) NOT NULL,
  chain_units numeric(78,0) NOT NULL,
  difference numeric(78,0) NOT NULL,
  differs_since_ms bigint,
  at_ms bigint NOT NULL
);

-- Settings that the sandbox moves: clock and prices.
CREATE TABLE sandbox_settings (
  name text PRIMARY KEY,
  value jsonb NOT NULL
);

-- Append-only: corrections are new rows.
REVOKE UPDATE, DELETE ON journal, events, facts FROM cambist_service;
REVOKE INSERT, UPDATE, DELETE ON ledger_accounts FROM cambist_service;
GRANT SELECT ON ledger_accounts TO cambist_service;

-- Down Migration

DROP TABLE sandbox_settings, reconciliations, reserves, chain_blocks, chain_heads, leases, retry_slots, rate_locks,
  house_deposits, account_nonces, coins, addresses, attempts, outflows, journal, ledger_accounts, deposits, events,
  facts, orders;
ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM cambist_service;
-- The role stays: other databases of the server may use it.
REVOKE USAGE ON SCHEMA public FROM cambist_service;

-- Up Migration

-- What webhooks of an account are signed with. Two slots and no third, as with API keys: at most two are live while one
-- replaces the other. Times by the wall clock.
CREATE TABLE webhook_secrets (
  account_id    text     NOT NULL REFERENCES accounts,
  slot          smallint NOT NULL CHECK (slot IN (1, 2)),
  -- Encrypted (accounts/secret_box.ts) and bound to the account: a row copied to another one does not open.
  sealed        bytea    NOT NULL,
  created_at_ms bigint   NOT NULL,
  -- Null: lives until it is replaced.
  expires_at_ms bigint,
  PRIMARY KEY (account_id, slot)
);

-- Where an account hears of all its orders. The URL of an endpoint never changes: another URL is another endpoint.
CREATE TABLE webhook_endpoints (
  endpoint_id    text   PRIMARY KEY CHECK (endpoint_id ~ '^we_[0-9a-z]{8,32}$'),
  account_id     text   NOT NULL REFERENCES accounts,
  url            text   NOT NULL CHECK (length(url) BETWEEN 1 AND 2048),
  created_at_ms  bigint NOT NULL,
  disabled_at_ms bigint,
  -- Its owner, or the receiver itself by answering 410.
  disabled_by    text CHECK (disabled_by IN ('owner', 'receiver')),
  CHECK ((disabled_at_ms IS NULL) = (disabled_by IS NULL)),
  UNIQUE (account_id, url)
);

-- A line is an order and one receiver of its events, one of which at a time is told: what is claimed is the line, so
-- that events of an order cannot overtake one another.
CREATE TABLE webhook_lines (
  bucket                smallint NOT NULL,
  order_id              text     NOT NULL,
  -- `callback` for the order's callback_url, or an endpoint of the account.
  receiver              text     NOT NULL,
  account_id            text     NOT NULL,
  url                   text     NOT NULL,
  -- Host and port of the URL: what is under way is counted by it.
  host                  text     NOT NULL,
  -- The event that is told next, and when; null when everything has been told.
  next_sequence         integer,
  due_at_ms             bigint,
  -- The receiver of this order alone wants no more (410).
  closed_at_ms          bigint,
  -- A claim by a worker: until when (wall clock), and the number that grows with every claim.
  claimed_until_wall_ms bigint   NOT NULL DEFAULT 0,
  claim_fence           bigint   NOT NULL DEFAULT 0,
  PRIMARY KEY (bucket, order_id, receiver),
  FOREIGN KEY (bucket, order_id) REFERENCES orders (bucket, order_id),
  CHECK ((next_sequence IS NULL) = (due_at_ms IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX webhook_lines_due ON webhook_lines (account_id, host, due_at_ms) WHERE due_at_ms IS NOT NULL;

-- One event for one receiver.
CREATE TABLE webhook_deliveries (
  bucket      smallint NOT NULL,
  order_id    text     NOT NULL,
  receiver    text     NOT NULL,
  sequence    integer  NOT NULL,
  account_id  text     NOT NULL,
  -- cancelled: nobody wants it any more.
  state       text     NOT NULL CHECK (state IN ('waiting', 'delivered', 'exhausted', 'cancelled')),
  -- Failed ones since it began to wait: how long it waits for the next depends on it.
  attempts    smallint NOT NULL DEFAULT 0,
  due_at_ms   bigint   NOT NULL,
  -- When the event happened.
  event_at_ms bigint   NOT NULL,
  ended_at_ms bigint,
  PRIMARY KEY (bucket, order_id, receiver, sequence),
  FOREIGN KEY (bucket, order_id, receiver) REFERENCES webhook_lines (bucket, order_id, receiver),
  CHECK ((state = 'waiting') = (ended_at_ms IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX webhook_deliveries_of_account ON webhook_deliveries (account_id, event_at_ms, order_id, receiver, sequence);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (bucket, order_id, receiver, sequence) INCLUDE (due_at_ms, event_at_ms)
  WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_oldest ON webhook_deliveries (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

-- Written before the message is sent: without an outcome it may have been sent, and whoever sent it is gone or not yet
-- back.
CREATE TABLE webhook_attempts (
  bucket      smallint NOT NULL,
  order_id    text     NOT NULL,
  receiver    text     NOT NULL,
  sequence    integer  NOT NULL,
  -- The claim that it was made under.
  fence       bigint   NOT NULL,
  began_at_ms bigint   NOT NULL,
  ended_at_ms bigint,
  outcome     text     CHECK (outcome IN ('answered', 'forbidden', 'failed')),
  -- The HTTP status.
  status      smallint,
  -- The first of what was answered, or why there was no answer.
  said        text,
  PRIMARY KEY (bucket, order_id, receiver, sequence, fence),
  FOREIGN KEY (bucket, order_id, receiver, sequence)
    REFERENCES webhook_deliveries (bucket, order_id, receiver, sequence) ON DELETE CASCADE,
  CHECK ((outcome IS NULL) = (ended_at_ms IS NULL)),
  CHECK ((outcome IS NOT DISTINCT FROM 'answered') = (status IS NOT NULL))
);

-- Down Migration

DROP TABLE webhook_attempts, webhook_deliveries, webhook_lines, webhook_endpoints, webhook_secrets;

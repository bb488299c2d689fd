-- Up Migration

-- Small tables that every order refers to. On a cluster they are reference tables, copied to each node, so they
-- carry no bucket. Times are epoch milliseconds of the wall clock, because signatures live by it too.

CREATE TABLE accounts (
  account_id    text   PRIMARY KEY CHECK (account_id ~ '^acc_[0-9a-z]{8,32}$'),
  name          text   NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  created_at_ms bigint NOT NULL
);

CREATE TABLE api_keys (
  key_id          text   PRIMARY KEY CHECK (key_id ~ '^ck_[0-9a-z]{8,32}$'),
  account_id      text   NOT NULL REFERENCES accounts,
  label           text   NOT NULL CHECK (length(label) <= 100),
  scopes          text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'trade'] AND cardinality(scopes) > 0),
  -- Addresses and CIDR ranges; empty means anywhere.
  ip_allow        text[] NOT NULL,
  created_at_ms   bigint NOT NULL,
  -- Kept to the minute: it answers "is this key still used?", it is not an audit log.
  last_used_at_ms bigint,
  revoked_at_ms   bigint
);

CREATE INDEX api_keys_by_account ON api_keys (account_id);

-- Two slots and no third: at most two secrets of a key can be live while one replaces the other.
CREATE TABLE api_key_secrets (
  key_id        text     NOT NULL REFERENCES api_keys,
  slot          smallint NOT NULL CHECK (slot IN (1, 2)),
  -- Encrypted (accounts/secret_box.ts) and bound to key_id: a row copied to another key does not open.
  sealed        bytea    NOT NULL,
  created_at_ms bigint   NOT NULL,
  -- Null: lives until it is replaced or the key is revoked.
  expires_at_ms bigint,
  PRIMARY KEY (key_id, slot)
);

-- Down Migration

DROP TABLE api_key_secrets;
DROP TABLE api_keys;
DROP TABLE accounts;

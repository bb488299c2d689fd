-- Up Migration

-- The signer's own record of what it signed. It may live in another database (SIGNER_DATABASE_URL).
CREATE SCHEMA signer;
CREATE TABLE signer.signed_transactions (
  payout_id text NOT NULL,
  attempt smallint NOT NULL CHECK (attempt > 0),
  intent jsonb NOT NULL,
  asset text NOT NULL,
  units numeric(78,0) NOT NULL CHECK (units >= 0),
  tx_hash text NOT NULL UNIQUE,
  bytes text NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (payout_id, attempt)
);
CREATE INDEX signed_transactions_recent ON signer.signed_transactions (asset, at_ms);
GRANT USAGE ON SCHEMA signer TO cambist_service;
GRANT SELECT, INSERT ON signer.signed_transactions TO cambist_service;

-- Down Migration

DROP SCHEMA signer CASCADE;

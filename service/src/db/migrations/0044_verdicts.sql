-- Up Migration

-- A transaction of the outflow that is deep and whose token moved in another way than it was to, and how: what only a person can judge.
ALTER TABLE outflows
  ADD COLUMN unjudged_tx_hash text,
  ADD COLUMN unjudged_moved text,
  ADD CONSTRAINT outflows_unjudged CHECK ((unjudged_tx_hash IS NULL) = (unjudged_moved IS NULL));

-- An operator's word about that: whether the customer counts as paid. Of just that transaction and just that move, because another
-- branch of the chain may have another attempt, or another move.
CREATE TABLE verdicts (
  bucket smallint NOT NULL,
  payout_id text NOT NULL,
  tx_hash text NOT NULL,
  moved text NOT NULL,
  is_paid boolean NOT NULL,
  at_wall_ms bigint NOT NULL,
  PRIMARY KEY (bucket, payout_id, tx_hash, moved),
  FOREIGN KEY (bucket, payout_id) REFERENCES outflows (bucket, payout_id)
);
REVOKE UPDATE, DELETE ON verdicts FROM cambist_service;

-- What failed with a nonce of the reserve: it may be mined once the filler of that nonce has lost its block.
CREATE INDEX outflows_failed ON outflows (chain, nonce) WHERE state = 'failed' AND from_address IS NULL;

-- Down Migration

DROP INDEX outflows_failed;
DROP TABLE verdicts;
ALTER TABLE outflows
  DROP CONSTRAINT outflows_unjudged,
  DROP COLUMN unjudged_tx_hash, DROP COLUMN unjudged_moved;

-- Up Migration

-- Where an outflow ended and what it cost, so that it is seen when the chain leaves that block, and known what to turn
-- round. `orphaned`: it was final, lost its block, and its bytes go out again until they are as deep as before.
ALTER TABLE outflows
  ADD COLUMN mined_height bigint,
  ADD COLUMN mined_hash text,
  ADD COLUMN mined_cost numeric(78,0),
  ADD CONSTRAINT outflows_mined CHECK ((mined_height IS NULL) = (mined_hash IS NULL)
    AND (mined_height IS NULL) = (mined_cost IS NULL)),
  DROP CONSTRAINT outflows_state_check,
  ADD CONSTRAINT outflows_state_check CHECK (state IN
    ('planned', 'signed', 'broadcast', 'confirmed', 'orphaned', 'failed', 'cancelled')),
  ADD CONSTRAINT outflows_orphaned CHECK (state <> 'orphaned' OR mined_hash IS NOT NULL);

DROP INDEX outflows_one_success, outflows_due;
CREATE UNIQUE INDEX outflows_one_success ON outflows (bucket, order_id)
  WHERE kind IN ('payout', 'refund') AND state IN ('confirmed', 'orphaned');
CREATE INDEX outflows_due ON outflows (chain, due_at_ms)
  WHERE state IN ('planned', 'signed', 'broadcast', 'orphaned');
CREATE INDEX outflows_final ON outflows (chain, mined_height) WHERE state = 'confirmed';

INSERT INTO ledger_accounts (account) VALUES ('orphaned_payouts');

-- Down Migration

DELETE FROM ledger_accounts WHERE account = 'orphaned_payouts';
DROP INDEX outflows_one_success, outflows_due, outflows_final;
CREATE UNIQUE INDEX outflows_one_success ON outflows (bucket, order_id)
  WHERE kind IN ('payout', 'refund') AND state = 'confirmed';
CREATE INDEX outflows_due ON outflows (chain, due_at_ms) WHERE state IN ('planned', 'signed', 'broadcast');
ALTER TABLE outflows
  DROP CONSTRAINT outflows_orphaned,
  DROP CONSTRAINT outflows_mined,
  DROP CONSTRAINT outflows_state_check,
  ADD CONSTRAINT outflows_state_check CHECK (state IN
    ('planned', 'signed', 'broadcast', 'confirmed', 'failed', 'cancelled')),
  DROP COLUMN mined_height, DROP COLUMN mined_hash, DROP COLUMN mined_cost;

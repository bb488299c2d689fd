-- Up Migration

-- The outflow that a filler on a coin chain stands in for: its coins go back to us, so that it never pays. On account
-- chains the nonce says which one that is.
ALTER TABLE outflows
  ADD COLUMN fills text,
  ADD CONSTRAINT outflows_fills CHECK (fills IS NULL OR (kind = 'filler' AND nonce IS NULL));

-- Down Migration

ALTER TABLE outflows DROP CONSTRAINT outflows_fills, DROP COLUMN fills;

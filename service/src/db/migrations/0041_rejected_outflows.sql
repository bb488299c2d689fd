-- Up Migration

-- A payout or refund that the chain had executed and rejected, and whose block it has left: it may be mined again, and is never sent again.
ALTER TABLE outflows ADD COLUMN is_block_lost boolean NOT NULL DEFAULT false;
CREATE INDEX outflows_lost ON outflows (chain, nonce) WHERE is_block_lost;

-- Down Migration

ALTER TABLE outflows DROP COLUMN is_block_lost;

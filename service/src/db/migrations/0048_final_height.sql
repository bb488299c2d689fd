-- Up Migration

-- The newest block of those that were read (chain_blocks) that the network is known to call final: what a node says of another branch
-- does not count. Null where the network does not say, and before the first look that asks.
ALTER TABLE chain_heads ADD COLUMN final_height bigint;

-- Down Migration

ALTER TABLE chain_heads DROP COLUMN final_height;

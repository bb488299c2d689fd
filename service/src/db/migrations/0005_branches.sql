-- Up Migration

-- How often this chain left a branch. It is part of what is told of a block, so that a block that is left and comes
-- back is news again, and a repetition after a crash is not.
ALTER TABLE chain_heads ADD COLUMN reorganisations bigint NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE chain_heads DROP COLUMN reorganisations;

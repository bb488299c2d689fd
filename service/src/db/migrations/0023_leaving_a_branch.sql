-- Up Migration

-- Everything above this block is being told to have left the chain, and all of it has to be told, whatever the chain says
-- meanwhile: what was told of a part of it would be true of none otherwise. Null while nothing leaves.
ALTER TABLE chain_heads ADD COLUMN leaving_above_height bigint;

-- Down Migration

ALTER TABLE chain_heads DROP COLUMN leaving_above_height;

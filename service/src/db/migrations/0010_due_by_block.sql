-- Up Migration

-- The block from which on it is worth looking for an outflow that the network has: until then nothing about it changes.
ALTER TABLE outflows ADD COLUMN due_height bigint;

-- Down Migration

ALTER TABLE outflows DROP COLUMN due_height;

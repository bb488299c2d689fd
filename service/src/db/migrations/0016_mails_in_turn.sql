-- Up Migration

-- Which event of which order a mail tells of: an order's mails to one address leave in the order of its events. Null for
-- mails that wait for no other.
ALTER TABLE mails
  ADD COLUMN order_id text,
  ADD COLUMN sequence integer,
  ADD CHECK ((order_id IS NULL) = (sequence IS NULL));
CREATE INDEX mails_in_turn ON mails (bucket, order_id, sequence) WHERE state = 'waiting';

-- Down Migration

ALTER TABLE mails DROP COLUMN order_id, DROP COLUMN sequence;

-- Up Migration

-- What is promised to the customers of one chain is summed at each of its blocks: by asset, because orders in EMERGENCY wait for their
-- customer without an end, and those of all other chains would be read as well. Nothing asks for one state by its times. It is the
-- index that there was with one more column: an order writes as many entries as before.
DROP INDEX orders_unfinished;
CREATE INDEX orders_unfinished ON orders (status, from_asset, updated_at_ms)
  WHERE status NOT IN ('DONE', 'EXPIRED', 'REFUNDED');

-- Down Migration

DROP INDEX orders_unfinished;
CREATE INDEX orders_unfinished ON orders (status, updated_at_ms)
  WHERE status NOT IN ('DONE', 'EXPIRED', 'REFUNDED');

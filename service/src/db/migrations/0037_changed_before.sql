-- Up Migration

-- What changed of an account since somebody asked last, and which of it was created before a time: those few are picked out of the
-- index alone. A change of an order writes as many entries as before, each a little longer.
DROP INDEX orders_by_change;
CREATE INDEX orders_by_change ON orders (account_id, updated_at_ms, created_at_ms, order_id);

-- Down Migration

DROP INDEX orders_by_change;
CREATE INDEX orders_by_change ON orders (account_id, updated_at_ms);

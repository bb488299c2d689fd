-- Up Migration

-- What changed of an account since somebody asked last: few, however many orders it has had.
CREATE INDEX orders_by_change ON orders (account_id, updated_at_ms);

-- Down Migration

DROP INDEX orders_by_change;

-- Up Migration

-- An account's orders of one status in the order in which they are listed: the few of a rare one are found without reading all
-- that the account ever had.
CREATE INDEX orders_by_status ON orders (account_id, status, created_at_ms, order_id);

-- Down Migration

DROP INDEX orders_by_status;

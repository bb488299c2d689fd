-- Up Migration

-- An account's orders in the order in which they are listed. Neither column ever changes, so a place in the list stays
-- where it is whatever happens to the orders around it.
CREATE INDEX orders_by_account ON orders (account_id, created_at_ms, order_id);

-- Down Migration

DROP INDEX orders_by_account;

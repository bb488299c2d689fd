-- Up Migration

-- Which key the orders are sealed with, by its id: noted by the first process that has one. A process with another does not start. Whoever
-- wants another on purpose owns the table.
CREATE TABLE order_seal_key (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  key_id text NOT NULL CHECK (key_id ~ '^[0-9a-f]{16}$')
);
REVOKE UPDATE, DELETE ON order_seal_key FROM cambist_service;

-- Down Migration

DROP TABLE order_seal_key;

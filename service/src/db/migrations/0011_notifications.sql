-- Up Migration

-- How far the events of an order have been handed on to whoever wants to know: webhooks and mails. The order's row
-- says it, because that is what makes those that wait findable by an index, and creating an order enqueue nothing.
ALTER TABLE orders ADD COLUMN relayed_sequence integer NOT NULL DEFAULT 0;
-- Nobody asked to be told of what happened before.
UPDATE orders SET relayed_sequence = sequence;
CREATE INDEX orders_to_relay ON orders (updated_at_ms) WHERE sequence > relayed_sequence;

-- Where mails of an account go. One address is one account, because it is how its owner signs in.
ALTER TABLE accounts ADD COLUMN email text CHECK (length(email) BETWEEN 3 AND 254 AND email = lower(email));
CREATE UNIQUE INDEX accounts_by_email ON accounts (email);

-- An account without a row has the defaults of its columns.
CREATE TABLE notification_settings (
  account_id text PRIMARY KEY REFERENCES accounts,
  -- Of which orders its owner wants mails.
  emails     text NOT NULL DEFAULT 'all' CHECK (emails IN ('all', 'with_callback', 'off')),
  -- Which of the optional mails its owner does not want.
  muted      text[] NOT NULL DEFAULT '{}' CHECK
    (muted <@ ARRAY['payment_received', 'order_completed', 'order_failed', 'order_expired'])
);

-- Down Migration

DROP TABLE notification_settings;
DROP INDEX accounts_by_email, orders_to_relay;
ALTER TABLE accounts DROP COLUMN email;
ALTER TABLE orders DROP COLUMN relayed_sequence;

-- Up Migration

-- What an account is to be told yet, and what it was not told: among all that it was told, that is found by reading it all.
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (account_id, state, event_at_ms, order_id, receiver, sequence)
  WHERE state <> 'delivered';

-- Down Migration

DROP INDEX webhook_deliveries_by_state;

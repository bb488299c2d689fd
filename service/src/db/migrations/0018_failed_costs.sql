-- Up Migration

-- What an order's outflows took of the network that were executed and failed, in the native asset of the chain: of payouts,
-- and of refunds.
ALTER TABLE orders
  ADD COLUMN failed_payouts_cost numeric(78,0) NOT NULL DEFAULT 0,
  ADD COLUMN failed_refunds_cost numeric(78,0) NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE orders DROP COLUMN failed_payouts_cost, DROP COLUMN failed_refunds_cost;

-- Up Migration

-- Orders whose time is up are looked for asset by asset.
DROP INDEX orders_that_expire;
CREATE INDEX orders_that_expire ON orders (from_asset, expires_at_ms) WHERE status = 'NEW';

-- Few among many: money that no order can use, and what is booked of outflows that lost their block.
CREATE INDEX deposits_uncounted ON deposits (chain, deposit_key) WHERE role <> 'counted';
CREATE INDEX journal_of_orphans ON journal (entry_key) WHERE debit = 'orphaned_payouts' OR credit = 'orphaned_payouts';

-- Down Migration

DROP INDEX journal_of_orphans, deposits_uncounted, orders_that_expire;
CREATE INDEX orders_that_expire ON orders (expires_at_ms) WHERE status = 'NEW';

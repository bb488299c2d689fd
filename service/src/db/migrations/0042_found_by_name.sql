-- Up Migration

-- What a customer can name leads to his order: the transaction that he paid with, wherever it came. That of a payout has its index.
CREATE INDEX deposits_by_tx ON deposits (tx_hash);
CREATE INDEX house_deposits_by_tx ON house_deposits (tx_hash);
-- What came to the address of an order and is not the order's, is shown with it.
CREATE INDEX house_deposits_of_order ON house_deposits (order_id) WHERE order_id IS NOT NULL;

-- Down Migration

DROP INDEX house_deposits_of_order, house_deposits_by_tx, deposits_by_tx;

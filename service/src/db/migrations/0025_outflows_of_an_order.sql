-- Up Migration

-- Whether a later outflow of the same order (`…:2` after `…:1`) was signed already. No order's name has a colon in it.
CREATE INDEX signed_transactions_of_order ON signer.signed_transactions (split_part(payout_id, ':', 1));

-- What an order was once to be paid and was not: few orders have any.
CREATE INDEX outflows_given_up ON outflows (bucket, order_id)
  WHERE kind IN ('payout', 'refund') AND state IN ('cancelled', 'failed');

-- Down Migration

DROP INDEX outflows_given_up;
DROP INDEX signer.signed_transactions_of_order;

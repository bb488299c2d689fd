-- Up Migration

-- Whether a later outflow of the same order (`…:2` after `…:1`) was signed already. No order's name has a colon in it.
CREATE INDEX signed_transactions_of_order ON signer.signed_transactions (split_part(payout_id, ':', 1));

-- Down Migration

DROP INDEX signer.signed_transactions_of_order;

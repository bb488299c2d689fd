-- Up Migration

-- Few among many: what is booked of deposits that lost their block after their money may have left.
CREATE INDEX journal_of_orphaned_deposits ON journal (asset)
  WHERE debit = 'orphaned_deposits' OR credit = 'orphaned_deposits';

-- Down Migration

DROP INDEX journal_of_orphaned_deposits;

-- Up Migration

-- What is owed of a payout that was final and can never be mined again, and is paid by hand. `about`: the payout.
ALTER TABLE operator_words
  DROP CONSTRAINT operator_words_act_check,
  ADD CONSTRAINT operator_words_act_check CHECK (act IN ('closed_unclaimed', 'written_off', 'closed_owed'));

-- Down Migration

ALTER TABLE operator_words
  DROP CONSTRAINT operator_words_act_check,
  ADD CONSTRAINT operator_words_act_check CHECK (act IN ('closed_unclaimed', 'written_off'));

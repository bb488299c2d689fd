-- Up Migration

-- Keys that were revoked are kept: neither counting those that live nor finding those revoked last goes through all of them.
CREATE INDEX api_keys_live ON api_keys (account_id) WHERE revoked_at_ms IS NULL;
CREATE INDEX api_keys_revoked ON api_keys (account_id, revoked_at_ms DESC, key_id) WHERE revoked_at_ms IS NOT NULL;
DROP INDEX api_keys_by_account;

-- Mails that wait, of each account the one that is due first: the condition is that of `claimMails` (db/mails.ts).
CREATE INDEX mails_by_account ON mails ((coalesce(account_id, '-')), due_at_ms)
  WHERE state = 'waiting' AND kind NOT IN ('sign_in_link', 'email_change_old', 'email_change_new');

-- Down Migration

DROP INDEX mails_by_account;
CREATE INDEX api_keys_by_account ON api_keys (account_id);
DROP INDEX api_keys_revoked, api_keys_live;

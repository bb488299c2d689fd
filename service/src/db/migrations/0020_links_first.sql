-- Up Migration

-- Mails whose links end are found past all others that wait: the condition is that of `claimMails` (db/mails.ts).
CREATE INDEX mails_links ON mails (due_at_ms)
  WHERE state = 'waiting' AND kind IN ('sign_in_link', 'email_change_old', 'email_change_new');

-- Down Migration

DROP INDEX mails_links;

import { expect, test } from 'vitest'
import { isOfRecipient } from './whom_it_refuses.ts'

/**
 * What: of what mail servers say to RCPT, only that there is no such mailbox refuses a mail for good.
 * How: their usual texts.
 */
const ofRecipient = [
  '550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in local recipient table',
  '550 <a@b.example>: Recipient address rejected: User unknown in virtual mailbox table',
  "550-5.1.1 The email account that you tried to reach does not exist. Please try\n550 5.1.1 double-checking the recipient's email address",
  '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient a@b.example not found by SMTP address lookup',
  '550 5.1.1 <a@b.example>... User unknown',
  '550 <a@b.example>... User unknown',
  '550 sorry, no mailbox here by that name. (#5.1.1)',
  '511 sorry, no mailbox here by that name (#5.1.1 - chkuser)',
  '550 sorry, no mailbox here by that name',
  '550 Unknown user',
  '550 No Such User Here',
  '550-No such user here\n550 No such user here',
  '550 <a@b.example>, Recipient unknown',
  '550 MAILBOX NOT FOUND',
  '550 User <a@b.example> does not exist',
  "550 Mailbox a@b.example doesn't exist",
  '550 Message was not accepted -- invalid mailbox. Local mailbox a@b.example is unavailable: user not found',
  '550 Requested action not taken: mailbox unavailable',
  '550 mailbox unavailable.',
  '501 Error: Bad recipient address syntax',
  '550 No such user here [5.1.1.7]',
  '550 <author@blockchain.example>... User unknown',
]

const ofUs = [
  "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
  '550 Delivery is not allowed to this address.',
  '550-Requested action not taken: mailbox unavailable\n550 Failure sending mail. Try again later',
  '550-Requested action not taken: mailbox unavailable\n550 invalid DNS MX or A/AAAA resource record',
  '550 Requested action not taken: mailbox unavailable or not local',
  '550 Mailbox unavailable or access denied',
  '550 User has exceeded outgoing email quota',
  '550 Domain x.example has exceeded the max emails per hour (150/100 (150%)) allowed. Message discarded.',
  '550 rejected because 192.0.2.1 is in a black list at dnsbl.example',
  '550 rejected because [5.1.1.7] is in a black list at dnsbl.example',
  '550 sorry, no mailbox here by that name (#5.1.1)\n550 or you may not send (#5.7.1)',
  '550 5.7.1 <a@b.example>: No such user',
  '550-Verification failed for <orders@exchange.example>\n550-No such user here\n550 Sender verify failed',
  '550 Unknown user name or bad password',
  '550 relay not permitted',
  '550 Relaying to user unknown here is not done',
  '554 <a@b.example>: Recipient address rejected: Access denied',
  '550 Invalid recipient: <a@b.example>',
  '550 Unrouteable address',
  '550 Mailing to remote domains not supported',
  '551 User not local; please try elsewhere',
  '552 Mailbox full',
  '550 #5.1.0 Address rejected.',
  '530 Authentication required',
  '535 User unknown',
  '550 No',
  '550',
]

const toRecipient = (response: string) =>
  isOfRecipient({ command: 'RCPT TO', response, responseCode: Number(response.slice(0, 3)) })

test.each(ofRecipient)('is about the recipient: %s', (response) => {
  expect(toRecipient(response)).toBe(true)
})

test.each(ofUs)('waits: %s', (response) => {
  expect(toRecipient(response)).toBe(false)
})

test('once a mail was heard only a code is about its recipient, and before there is one nothing is', () => {
  const said = (command: string, response: string) => isOfRecipient({ command, response, responseCode: 550 })
  expect(said('DATA', '550 5.1.1 No such user')).toBe(true)
  expect(said('DATA', '550 No such user')).toBe(false)
  expect(said('MAIL FROM', '550 5.1.1 No such user')).toBe(false)
  expect(said('MAIL FROM', '550 No such user')).toBe(false)
  expect(isOfRecipient({})).toBe(false)
})

/** What it says of us may come behind all that was read; and every place to begin at times every place to end at takes minutes. */
test.each([
  `550 user ${'@'.repeat(1_000_000)}`,
  `550 user unknown ${'x'.repeat(1_000_000)}`,
  `550 User unknown\n${'550-\n'.repeat(1_000)}550 relay access denied`,
])('an answer that is too long to be read says nothing of the recipient', (response) => {
  expect(isOfRecipient({ command: 'RCPT TO', response, responseCode: 550 })).toBe(false)
})

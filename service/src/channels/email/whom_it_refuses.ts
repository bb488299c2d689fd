/** A 5yz of a mail server, and what it answers. */
export type Refusal = {
  readonly command?: string
  /** By nodemailer: EMESSAGE where the mail had been heard, EENVELOPE where DATA itself was refused. */
  readonly code?: string
  /** As it came, with its number: several lines have one each. */
  readonly response?: string
  readonly responseCode?: number
}

/** They are about us: who we are, and how we talk (RFC 4954 §6, RFC 3207 §4). */
const aboutUs = [502, 503, 504, 530, 534, 535, 538]

/**
 * `550 5.1.1 …` (RFC 2034), or `… (#5.1.1)`, as qmail has it: with them a mail server says whom an answer is about. An address is
 * none (`[5.1.1.7]`).
 */
const CODES = /(?:^5\d\d[ -]|[(#[])([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/gm

/**
 * Of RFC 3463 §3.2 and §3.3 (and RFC 7505) what can be said of a recipient alone. 5.1.0, 5.1.7 and 5.1.8 are said of senders, which
 * some look at only when they hear of a recipient, and 5.2.0 of those who may not send as somebody.
 */
const OF_RECIPIENT = /^5\.(1\.([1-6]|10)|2\.[12])$/

/** What passes, and what is said of the network and the way there (RFC 3463 §3.5), as which some have the limit of a day. */
const NOT_OF_CONTENT = /^(?:4\.|5\.4\.)/

/**
 * Without a code: that there is no such mailbox, which is so whoever asks. What some say also to those whom they do not want is
 * not here: `Invalid recipient` (OpenSMTPD, when no rule lets this sender through), `Unrouteable address` (Exim, also where it hands
 * on nothing), `Address rejected`, `mailbox unavailable` with more words. Nor is a full mailbox, which may be our own quota.
 */
const NO_MAILBOX: readonly RegExp[] = [
  // Exim, cPanel, hMailServer, MDaemon: `Unknown user`, `No Such User Here`.
  /\b(?:unknown|no such) (?:local )?(?:user|recipient|mailbox)\b/i,
  // Postfix, Sendmail, Courier, AOL, mail.ru: `User unknown in local recipient table`, `MAILBOX NOT FOUND`, `User <a@b> does not exist`.
  /\b(?:user|recipient|mailbox)(?: address)?:? +(?:is )?(?:unknown|not found|does not exist|doesn't exist)\b/i,
  // qmail: `sorry, no mailbox here by that name`.
  /\bno mailbox (?:here )?by that name\b/i,
  // Postfix: `Bad recipient address syntax`.
  /\brecipient address syntax\b/i,
  // RFC 5321 §4.2.3, and Outlook.com. It stands for policies too, but then more is said.
  /^5\d\d (?:requested (?:mail )?action not taken: )?mailbox unavailable[.!]?\s*$/i,
]

/** Words that speak of us, whatever else an answer says. Who is taken for one of us by mistake is only asked again. */
const OF_US: readonly RegExp[] = [
  // Whether we may send, and as whom (Exim: `relay not permitted`, `Sender verify failed`).
  /relay|sender|sending|outgoing|verif|auth|password|log.?on/i,
  // What they do not allow anybody like us (hMailServer: `Delivery is not allowed to this address`).
  /denied|prohibit|polic|allow|permit|block|black.?list|spam/i,
  // How much we may send (cPanel: `has exceeded the max emails per hour`).
  /limit|quota|exceed/i,
  // What passes.
  /later|temporar/i,
]

/** Whom an answer is about. A customer at `blockchain.example` is not what blocks us. */
const ADDRESS = /[<"]?[^\s<>"@]+@[^\s<>"@]+[>"]?/g

/** An answer may be a mebibyte long; no usual one for a mailbox that is not there comes near this. */
const READ_MAX = 2_000

/**
 * Whether a refusal is about the recipient, so that asking again helps nobody. What does not say so is not: a mail that waits for
 * an address that is wrong costs some attempts, one that is refused because of us is lost.
 */
export function isOfRecipient({ command, response = '', responseCode = 0 }: Refusal): boolean {
  const codes = codesIn(response)
  if (codes.length > 0) {
    return (command === 'RCPT TO' || command === 'DATA') && codes.every((code) => OF_RECIPIENT.test(code))
  }
  if (command !== 'RCPT TO' || aboutUs.includes(responseCode) || response.length > READ_MAX) return false
  const said = response.replace(ADDRESS, '')
  const says = (words: RegExp) => words.test(said)
  return NO_MAILBOX.some(says) && !OF_US.some(says)
}

/** Whether what the mail says may be why: it was heard, and no code speaks of something else. Another mail may be taken then. */
export function mayBeOfContent({ command, code, response = '' }: Refusal): boolean {
  if (command !== 'DATA' || code !== 'EMESSAGE') return false
  const codes = codesIn(response)
  return codes.length === 0 || !codes.every((said) => NOT_OF_CONTENT.test(said))
}

function codesIn(response: string): string[] {
  return [...response.matchAll(CODES)].map(([, code = '']) => code)
}

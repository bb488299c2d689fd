import { accept, type Outcome, refuse } from '../domain/outcome.ts'

const LENGTH_MAX = 254

/**
 * What mail servers take in practice: letters, digits and a few signs, one @, a domain. Quoted names, comments, literal
 * addresses and other scripts are left out on purpose: two spellings must never be two accounts, or look like another's.
 */
const shape =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** In small letters, as it is kept and compared. */
export function parseEmail(text: string): Outcome<string> {
  const email = text.trim().toLowerCase()
  const [local = ''] = email.split('@')
  if (email.length <= LENGTH_MAX && local.length <= 64 && shape.test(email)) return accept(email)
  return refuse({
    code: 'email_malformed',
    message: 'must be an email address in plain letters such as name@example.com, of at most 254 characters',
  })
}

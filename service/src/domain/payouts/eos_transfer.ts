/** The only contract whose EOS is EOS. */
export const EOS_TOKEN_CONTRACT = 'eosio.token'

/** What that contract takes of a memo, in UTF-8. */
export const EOS_MEMO_BYTES_MAX = 256

/**
 * The name of an account: no dot at an end, because those are not part of a name.
 * https://docs.antelope.io/docs/latest/guides/accounts
 */
export const eosName = /^[a-z1-5](?:[a-z1-5.]{0,10}[a-z1-5])?$/

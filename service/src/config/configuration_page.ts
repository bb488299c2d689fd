import { type Variable, variables } from './variables.ts'

/** The reference page (docs/operating/configuration.md). A test keeps the file equal to it. */
export function configurationPage(): string {
  const sections = new Map<string, string[]>()
  for (const [name, variable] of Object.entries(variables)) {
    sections.set(variable.section, [...(sections.get(variable.section) ?? []), describe(name, variable)])
  }
  const tables = [...sections].flatMap(([section, rows]) => [
    `## ${section}`,
    '',
    '| Variable | Used by | Default | Required | Meaning |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ])
  return [...introduction, ...tables].join('\n')
}

const introduction = [
  '# Configuration',
  '',
  'Cambist reads its environment once, at start, and refuses to start when anything is wrong with it; it lists',
  'every problem together with what to do. An unknown `CAMBIST_*` variable is refused, because a misspelt one would',
  'leave a default in force. An empty value counts as unset. Keys and passphrases are never given in a variable, only the file',
  'or descriptor that holds them. What is blank around a value is no part of it.',
  '',
  'A key file holds 32 random bytes in hex or base64 (`openssl rand -hex 32 > file`); lines starting with `#` are',
  'comments. Give every process only what its roles need: the columns below say which.',
  '',
  'When any chain a process works for is a main network, which every network counts as that is not a known test network (`service/src/config/test_networks.ts`), Cambist additionally refuses',
  'to start with a key of the sandbox, a signer without spend limits, or a base URL that is not https. Fewer than',
  'three price venues are refused everywhere, and so is a test network beside a main one: its coins would buy real ones.',
  '',
  'This page is generated from `service/src/config/variables.ts`; a test compares the two.',
  '',
]

function describe(name: string, variable: Variable): string {
  const used = variable.shapes.length === 2 ? 'sandbox, serve' : variable.shapes.join()
  const example = variable.example === undefined ? '' : ` Example: \`${variable.example}\`.`
  return `| \`${name}\` | ${used} | ${describeDefault(variable)} | ${variable.required ?? ''} | ${variable.meaning}${example} |`
}

function describeDefault({ default: fallback }: Variable): string {
  if (fallback === null || fallback === '') return ''
  if (typeof fallback === 'string') return `\`${fallback}\``
  return Object.entries(fallback)
    .map(([shape, text]) => `${shape} \`${text}\``)
    .join(', ')
}

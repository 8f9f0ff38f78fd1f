// site.mjs FOLDER: gives yici.js, yici_bg.wasm and yici.css in FOLDER their hashed names, writes compressed copies beside
// them, and prints the lines of hash.txt.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = process.argv[2];

/** Without what only people read: indentation, and comments that have lines of their own. */
function lean(kind, content) {
    if (kind === 'wasm') return content;
    const comments = /^[ \t]*\/\*[\s\S]*?\*\/[ \t]*\n/gm;
    return Buffer.from(content.toString('utf8').replace(comments, '').replace(/^[ \t]+/gm, ''));
}

for (const [kind, from] of [['js', 'yici.js'], ['wasm', 'yici_bg.wasm'], ['css', 'yici.css']]) {
    const content = lean(kind, readFileSync(`${folder}/${from}`));
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    const to = `${folder}/yici.${digest}.${kind}`;
    renameSync(`${folder}/${from}`, to);
    writeFileSync(to, content);
    writeFileSync(`${to}.gz`, gzipSync(content, { level: 9 }));
    const params = {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    };
    const small = brotliCompressSync(content, { params });
    writeFileSync(`${to}.br`, small);
    console.log(`${kind}: ${digest}`);
    console.error(`   yici.${digest}.${kind}: ${content.length} bytes, ${small.length} with brotli`);
}

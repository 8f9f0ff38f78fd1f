// What a person reads in each phase, in both languages: said by the tests in their own words, so that a wrong one is noticed.
export const WORDS = {
    en: {
        submit: 'Submit',
        submitting: 'Submitting',
        unknown: 'Your text is saved and will not be submitted twice',
        submitted: 'Submitted',
        alreadySubmitted: 'Already submitted, with another text. That one counts',
        thisDevice: 'this device',
        open: 'Open',
    },
    zh: {
        submit: '提交',
        submitting: '正在提交',
        unknown: '正在确认结果，内容已保存，不会重复提交',
        submitted: '已提交',
        alreadySubmitted: '已经提交过另一份内容，以那一份为准',
        thisDevice: '这台设备',
        open: '待提交',
    },
};
